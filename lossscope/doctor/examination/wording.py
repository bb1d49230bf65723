"""Write the verdict of an examination in words, and what further checks need."""

from __future__ import annotations

from collections import Counter

from .checks import Examination

_NEEDS = 4  # of further checks that are named


def verdict_of(examination: Examination) -> str:
    """Return the verdict on a source, and what would tell more."""
    checks, judgement = f"in {len(examination.checked)} checks", examination.judgement
    more = f"; {rest}" if (rest := needs_of(examination)) else ""
    if judgement.verdict == "too little to judge":
        little = [missed for missed in examination.not_checked if missed.is_too_little] or examination.not_checked
        (reason, _), *_ = Counter(missed.reason for missed in little).most_common(1)
        possible = len(examination.checked) + len(little)
        return f"Too little to judge: {len(examination.checked)} of {possible} checks could run, as {reason}."
    if judgement.verdict == "cannot explain":
        bad, bring = "; ".join(judgement.unexplained), "; ".join(judgement.bring)
        return f"Cannot explain: {bad}. No problem found {checks} says why. Bring: {bring}."
    if judgement.verdict == "no problem found":
        notes = counted(examination)
        return f"No problem found {checks}{f', {notes}' if notes else ''}{more}."
    return f"{counted(examination)} {checks}{more}."


def counted(examination: Examination) -> str:
    """Return the number of findings of each severity; empty without findings."""
    counts = [
        (severity, sum(f.severity == severity for f in examination.findings))
        for severity in ("error", "warning", "note")
    ]
    return ", ".join(f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in counts if n)


def needs_of(examination: Examination) -> str:
    """Return what further checks need, the commonest need first."""
    needs = Counter(missed.need for missed in examination.not_checked if missed.need)
    if not needs:
        return ""
    most = [need for need, _ in needs.most_common(_NEEDS)]
    return f"{sum(needs.values())} more need: {', '.join(most)}{', ...' if len(needs) > _NEEDS else ''} (-v)"
