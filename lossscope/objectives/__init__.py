"""One file per objective: its values or its gradient, its hyper-parameters, its paper."""
