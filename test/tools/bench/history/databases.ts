/** A bench on databases of so many stored operations each, on a server of its own. */
import { execute, openTemporaryServer } from '../../../harness/temporary-server.ts';
import type { Result } from '../frame.ts';
import { useEveryCore } from '../process.ts';
import { generateHistory } from './generate.ts';

/** @param prepare a statement that runs after the history is generated */
export async function onHistories(
  sizes: readonly number[],
  { shape = {}, prepare }: { shape?: Parameters<typeof generateHistory>[2]; prepare: string },
  measure: (url: string, operations: number) => Promise<Result[]>,
): Promise<Result[]> {
  useEveryCore();
  const server = await openTemporaryServer('bench');
  try {
    const results: Result[] = [];
    for (const operations of sizes) {
      const url = await server.createDatabase(`history_${operations}`);
      await generateHistory(url, operations, shape);
      await execute(url, prepare);
      await execute(url, 'vacuum (analyze)');
      // Else it runs beside what is measured.
      await execute(url, 'checkpoint');
      results.push(...(await measure(url, operations)));
    }
    return results;
  } finally {
    await server.close();
  }
}
