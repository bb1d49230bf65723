"""How to cite a number: a sentence with its source and settings, and the papers of its measure and its loss."""
