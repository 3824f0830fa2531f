"""Rudman and Eickhoff 2024: IsoScore* and I-STAR."""
