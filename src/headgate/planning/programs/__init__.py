"""Linear and mixed-integer programs behind exact plans and bounds."""
