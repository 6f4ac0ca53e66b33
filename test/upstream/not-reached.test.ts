/** What the log says of a service that is not reached. */
import { afterEach, expect, it } from 'vitest';
import { loggingFaults } from '../../src/upstream/http/not-reached.ts';
import { freePort } from '../harness/listen.ts';
import { closeAll, post, textLog, transportWith } from './rig.ts';

afterEach(closeAll);

it('Why the service is not reached is logged once a minute, not for each request', async () => {
  const { log, logged } = textLog();
  let nowMs = 0;
  const transport = loggingFaults(transportWith(), log, () => nowMs);
  const origin = `http://127.0.0.1:${await freePort()}`;
  const fail = async (times: number) => {
    for (let n = 0; n < times; n++) {
      const exchanged = await transport.exchange('polls', post(origin));
      expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'connection_refused' });
    }
  };
  const lines = () => logged.text.split('\n').filter(Boolean);
  await fail(5);
  nowMs = 59_999;
  await fail(1);
  expect(lines().map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', cause: 'connection_refused', origin },
  ]);
  nowMs = 60_000;
  await fail(3);
  expect(lines()).toHaveLength(2);
  // A request that was withdrawn says nothing of the service.
  const withdrawn = { ...post(origin), signal: AbortSignal.abort() };
  expect(await transport.exchange('polls', withdrawn)).toMatchObject({ cause: 'aborted' });
  expect(lines()).toHaveLength(2);
});
