"""The user's own loss: how it is called, and how its gradient with respect to S is computed."""
