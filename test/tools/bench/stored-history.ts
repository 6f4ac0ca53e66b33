/**
 * Whether costs grow with what is stored: recording and concluding a write, posting it, and
 * processing an observation of a wallet, on databases with few and with millions of settled
 * operations, most of which name one operator with a wallet. The stages run in this process over an
 * embedded Postgres; the databases are measured in turns.
 */
import { execute, openTemporaryServer } from '../../harness/temporary-server.ts';
import { type Bench, figuresOf, type Result } from './frame.ts';
import { generateHistory } from './history/generate.ts';
import { type Costs, type HistoryStages, openHistoryStages } from './history/stages.ts';
import { useEveryCore } from './process.ts';

const WHAT: Record<keyof Costs, string> = {
  write: 'record and conclude a write',
  posting: 'post a write',
  user: "process a user's wallet",
  settling: "process the operator's wallet, 400 writes settle",
  operator: "process the operator's wallet, nothing new",
};

export const storedHistory: Bench = {
  name: 'history',
  what: 'costs with so many operations stored; reference: an empty database',
  target: 'at most 1.3 × the cost on an empty database',
  long: true,
  async run({ rounds, stored }) {
    useEveryCore();
    const server = await openTemporaryServer('bench');
    const sizes = [0, ...stored.filter((size) => size > 0)];
    const open: HistoryStages[] = [];
    try {
      for (const size of sizes) {
        const url = await server.createDatabase(`history_${size}`);
        await generateHistory(url, size);
        const stages = await openHistoryStages(url);
        open.push(stages);
        // Opens the wallets; without statistics the plans of an empty database are poor.
        await stages.round();
        await execute(url, 'analyze');
      }
      const costs = sizes.map((): Costs[] => []);
      for (let round = 0; round < rounds; round++)
        for (const [n, stages] of open.entries()) costs[n]?.push(await stages.round());
      const [empty = [], ...others] = costs;
      return others.flatMap((ours, n) => resultsOf(sizes[n + 1] ?? 0, ours, empty));
    } finally {
      for (const stages of open) await stages.close();
      await server.close();
    }
  },
};

function resultsOf(size: number, ours: readonly Costs[], empty: readonly Costs[]): Result[] {
  return (Object.keys(WHAT) as (keyof Costs)[]).map((key) => {
    const ratios = ours.map((cost, round) => ({
      value: cost[key] / (empty[round]?.[key] ?? Number.NaN),
    }));
    return {
      what: `${WHAT[key]}, ${size.toLocaleString('en')} stored`,
      unit: 'ms',
      measured: figuresOf(ours.map((cost) => ({ value: cost[key] }))),
      reference: figuresOf(empty.map((cost) => ({ value: cost[key] }))),
      ratio: figuresOf(ratios).median,
      target: { of: 'ratio', atMost: 1.3 },
    };
  });
}
