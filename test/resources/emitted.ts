/**
 * Which event types the files of src emit, by their text: what is named there, but for what is only
 * compared with or looked up. Pure.
 */
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { srcOf, type Tree } from '../tidy/source.ts';

/** They show events, simulate the service, or log what others emit. */
const EMITS_NOTHING = /^src\/(resources|console|cli|api|sandbox)\/|^src\/outbox\/incidents\.ts$/;

export function emittedIn(tree: Tree): { path: string; types: string[] }[] {
  return srcOf(tree).flatMap((source) => {
    const { path, all } = source;
    if (EMITS_NOTHING.test(path)) return [];
    const compared = new Set([
      ...all('BinaryExpression').flatMap(({ left, right }) => [left.start, right.start]),
      ...all('Property').map(({ key }) => key.start),
      ...all('SwitchCase').flatMap(({ test }) => test?.start ?? []),
    ]);
    const literals = all('Literal').filter(({ start }) => !compared.has(start));
    const words = literals.flatMap(({ value }) => (typeof value === 'string' ? value : []));
    // `operation.${state}`, with the states that the file names.
    const begins = all('TemplateLiteral').flatMap(({ quasis: [first, last] }) =>
      last?.value.cooked === '' ? (first?.value.cooked ?? []) : [],
    );
    const made = begins.flatMap((begin) => words.map((word) => begin + word));
    const named = new Set([...words, ...made]);
    const types = EVENT_TYPES.filter((type) => named.has(type));
    return types.length === 0 ? [] : [{ path, types }];
  });
}
