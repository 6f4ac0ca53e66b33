/** A report as canonical JSON. Its `hash` is that of the canonical JSON of `content`. */
import { isoText } from '../../kernel/clock.ts';
import { canonicalJson } from '../../kernel/json.ts';
import type { Report } from '../store.ts';

export function renderJson(report: Report): string {
  return `${canonicalJson({
    id: report.id,
    kind: report.kind,
    period_from: isoText(report.periodFrom),
    period_to: isoText(report.periodTo),
    known_at: isoText(report.knownAt),
    requested_by: report.requestedBy,
    verdict: report.verdict,
    breaks: report.breaks,
    provisional: report.provisional,
    hash: report.hash,
    created_at: isoText(report.createdAt),
    content: report.content,
  })}\n`;
}
