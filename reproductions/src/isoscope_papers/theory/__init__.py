"""The statements of Mickus, Grönroos and Attieh 2024, proved, refuted or tried by experiment."""
