"""Interfaces besides `dagpost.fit`: command line, scikit-learn estimator, conversion to pgmpy."""
