/** The record of a wallet in an observation. Pure. */
import { wholeOf } from '../../kernel/amounts.ts';
import { must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';

/** What an observation with the result `seen` shows of a wallet. */
export function walletRecordOf(observation: { record: Json }): {
  addr: string;
  balance: bigint;
  status: number;
} {
  const record = observation.record as Record<string, unknown>;
  return {
    addr: String(record.addr),
    balance: must(wholeOf(record.balance), 'balance of an observation'),
    status: Number(record.status),
  };
}
