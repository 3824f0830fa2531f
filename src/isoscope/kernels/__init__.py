"""How numbers are crunched: products and tiles of pairs, on any torch device."""
