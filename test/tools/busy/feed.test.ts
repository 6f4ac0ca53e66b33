/** How the loads follow the feed of events. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { makeApp } from '../../harness/app.ts';
import { until } from '../../harness/until.ts';
import { followFeed } from './feed.ts';

it('The feed is read on after the daemon closed the connection', async () => {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    if (requests === 1) request.socket.end();
    else if (requests === 2) request.socket.resetAndDestroy();
    else response.end(JSON.stringify({ data: [{ id: 'evt_1' }], next_cursor: 'next' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const feed = followFeed(makeApp(() => `http://127.0.0.1:${port}`));
  await until(async () => feed.arrived[0]);
  await feed.stop();
  server.close();
  expect(feed.arrived[0]).toMatchObject({ id: 'evt_1' });
});
