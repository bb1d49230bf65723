"""How to cite a number: the sentence that says what was measured, and the papers whose measure and loss it is of."""
