/** The ways in which the answer to a write is lost, as faults of the sandbox. */
import type { FaultInput } from '../../src/sandbox/faults/kinds.ts';

/** @param lateMs delays of late answers, in milliseconds */
export function lostAnswers(...lateMs: number[]): FaultInput[] {
  return [
    { kind: 'lost_answer' },
    { kind: 'lost_answer', reset: true },
    { kind: 'truncated' },
    { kind: 'garbled' },
    { kind: 'dropped' },
    { kind: 'dropped', reset: true },
    ...lateMs.map((ms): FaultInput => ({ kind: 'late', delay_ms: ms })),
    { kind: 'error', code: '999', applied: true },
    { kind: 'error', code: '999' },
    { kind: 'status', status: 502, applied: true },
    { kind: 'status', status: 504 },
  ];
}
