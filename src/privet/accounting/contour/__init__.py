"""The contour accountant: line integrals of moments, and what they need where moments are hard."""
