import { describe, expect, it } from 'vitest';
import {
  bracketMsOf,
  stepOf,
  type WalletObservation,
} from '../../../src/reconciler/unknown/bracket.ts';

/** An effect of 7, sent at 10 s, applied by 46 s if at all; reads lag by 1 s. */
const UNKNOWN = { effect: 7n, sentAt: 10_000, quiescentAt: 46_000, readLagMs: 1_000 };

/** Observations of 10 ms as `seconds:residual`, with `?` if other operations are possible. */
function observations(text: string): WalletObservation[] {
  return text.split(' ').map((one) => {
    const [startS = '', residual = ''] = one.replace('?', '').split(':');
    const startedAt = Number(startS) * 1_000;
    return {
      ...{ observationId: `obs_${startS}`, startedAt, endedAt: startedAt + 10 },
      ...{ residual: BigInt(residual), unambiguous: !one.endsWith('?') },
    };
  });
}

describe('The bracket of an outside change that equals an unknown write', () => {
  it.each([
    ['from the last observation without it', '1:0 12:0 14:7 30:7', 3_010],
    ['from an observation before the send', '8:0 14:7', 7_010],
    ['over ambiguous observations', '8:0 12:0? 14:7? 16:7', 9_010],
    ['undefined without an observation without it', '14:7', undefined],
    ['undefined after another residual', '8:3 14:7', undefined],
    ['infinite if it showed before the send', '6:0 8:7 14:7', Number.POSITIVE_INFINITY],
    ['undefined if it is gone again', '8:0 14:7 16:0', undefined],
  ])('If the effect shows, it is %s', (_title, text, bracketMs) => {
    expect(bracketMsOf('executed', observations(text), UNKNOWN)).toBe(bracketMs);
  });

  it.each([
    ['the longest gap before quiescence', '1:0 9:0 12:0 30:0 50:0 900:0', 21_010],
    ['long if the first one after quiescence is late', '9:0 40:0 900:0', 861_010],
    ['undefined without an observation before the send', '11:0 50:0', undefined],
    ['undefined without an observation after quiescence', '9:0 45:0', undefined],
    ['undefined after another residual', '9:0 20:7 50:0', undefined],
  ])('If the effect does not show, it is %s', (_title, text, bracketMs) => {
    expect(bracketMsOf('not_executed', observations(text), UNKNOWN)).toBe(bracketMs);
  });

  it.each([
    ['beside an earlier change', '1:0 9:0 12:100 14:107 30:107', 3_010],
    ['after a change from before the send', '9:100 14:107', 6_010],
    ['not before the send', '1:0 9:7', undefined],
    ['not without an observation before the send', '12:0 14:7', undefined],
    ['not if it happened twice', '9:0 12:7 14:14', undefined],
    ['not if it was taken back', '9:0 12:7 14:0', undefined],
    ['not if the newest observation is ambiguous', '9:0 12:7 14:7?', undefined],
    ['not together with another change', '9:0 12:107', undefined],
  ])('On a wallet changed elsewhere a step counts %s', (_title, text, bracketMs) => {
    expect(stepOf(observations(text), UNKNOWN)?.bracketMs).toBe(bracketMs);
  });
});
