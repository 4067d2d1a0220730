"""The command line. Thin: each command has a Python twin, which its help names.

privet epsilon     privet.accounting.epsilon, .guarantee
privet delta       privet.accounting.delta, .bounds
privet noise       privet.accounting.calibrate
privet compare     privet.accounting.compare
privet profile     privet.accounting.profile
privet meaning     privet.report.meaning
privet fit         privet.estimators.fit_table
privet predict     privet.estimators.load_model
privet show        privet.estimators.TableModel.summary
privet schema      privet.preprocessing.schema_skeleton
privet lectures    privet.lectures.look_up, .check_for
"""

from privet.cli.commands import main

__all__ = ["main"]
