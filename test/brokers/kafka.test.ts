/** What holds of every kind of broker, of Kafka, and its partitions. */
import { compatibilityPartitioner } from '@platformatic/kafka';
import { expect, it } from 'vitest';
import { describeBroker } from './every-broker.ts';
import { startKafka } from './kafka.ts';

// From the tests of Java's client.
it.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
])('The key %s of Kafka has the partition that Java gives it', (key, hash) => {
  expect(compatibilityPartitioner({ topic: 'events' }, Buffer.from(key))).toBe(hash & 0x7fffffff);
});

describeBroker('Kafka', startKafka, { secure: true, elsewhere: true });
