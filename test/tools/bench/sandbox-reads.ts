/** Reads of the sandbox on one core, against a bare server that answers as many bytes. */
import { type Bench, type Frame, type Result, sideBySide } from './frame.ts';
import { pressed, requestText } from './load.ts';
import { startServer } from './process.ts';

const CONNECTIONS = 16;
const TARGET_PER_S = 5_000;
const TOKENS = '/v1/chain/erc721/1/tokens';

interface Read {
  what: string;
  path: string;
  authorization: string;
}

export const sandboxReads: Bench = {
  name: 'sandbox-reads',
  what: 'reads of the sandbox, one core, 1,000 tokens; reference: node:http, body of the same size',
  target: `at least ${TARGET_PER_S} requests per second`,
  async run(frame) {
    const sandbox = await startServer('sandbox-server.ts');
    const bare = await startServer('bare-server.ts');
    try {
      const results: Result[] = [];
      for (const read of readsOf(sandbox.ready)) {
        const ports = [Number(sandbox.ready.port), Number(bare.ready.port)] as const;
        results.push(await measured(frame, read, ...ports));
      }
      return results;
    } finally {
      await Promise.all([sandbox.stop(), bare.stop()]);
    }
  },
};

function readsOf({ addr = '', token = '', authorization: basic = '' }: Record<string, string>) {
  const authorization = `Bearer ${token}`;
  const reads: Read[] = [
    { what: 'account by address', path: `/v1/app/token/account?addr=${addr}`, authorization },
    { what: 'one token', path: `${TOKENS}/500`, authorization },
    { what: 'list, 20 of 1,000', path: `${TOKENS}?page=7&perPage=20`, authorization },
    { what: 'list by owner, 20 of 1,000', path: `${TOKENS}?ownerAddr=${addr}`, authorization },
    { what: 'list, 100 of 1,000', path: `${TOKENS}?page=3&perPage=100`, authorization },
    { what: 'check_token', path: `/v1/oauth/check_token?token=${token}`, authorization: basic },
    { what: 'maintenance', path: '/v1/system/maintenance', authorization: basic },
  ];
  return reads;
}

async function measured(
  { rounds, seconds }: Pick<Frame, 'rounds' | 'seconds'>,
  { what, path, authorization }: Read,
  sandboxPort: number,
  barePort: number,
): Promise<Result> {
  const headers = { authorization };
  const answer = await fetch(`http://127.0.0.1:${sandboxPort}${path}`, { headers });
  const bytes = (await answer.arrayBuffer()).byteLength;
  const press = (port: number, target: string) => () =>
    pressed({
      port,
      requests: [requestText('GET', target, headers)],
      connections: CONNECTIONS,
      seconds,
    });
  const figures = await sideBySide(
    { rounds },
    press(sandboxPort, path),
    press(barePort, `/${bytes}`),
  );
  return {
    what: `${what} (${bytes} B)`,
    unit: '/s',
    ...figures,
    target: { of: 'measured', atLeast: TARGET_PER_S },
  };
}
