"""Mickus, Grönroos and Attieh 2024: isotropy against clusters while a linear classifier trains."""
