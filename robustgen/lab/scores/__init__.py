"""From predictions to the papers' tables and pages.

scoring           `robustgen score`
results           predictions to errors and flip probabilities
measures          the formulas of the papers, applied to models; baselines and published values
intervals         bootstrap intervals and paired differences
family_means      the means of other families
scoreboard        all values of several models, and conditions that they must not fulfil
text_forms        a scoreboard as table, markdown, LaTeX, CSV, JSON
score_page        its page, with calibration and failures, and its chart
public            its form in Python
unknown_classes   `robustgen score-ood`
detection         `robustgen score-detection`
segmentation      `robustgen score-segmentation`
answers           `robustgen score-answers`
answer_files      tables of questions and answers: plain ones, VLMEvalKit's and lmms-eval's
answer_rules      rules that compare an answer with the right ones
result_grid       files for each corruption and severity
"""
