"""`python -m privet` is the command `privet`, wherever its script is."""

from privet.cli import main

if __name__ == "__main__":
    main(prog_name="privet")
