/** The types of events that `tallyhook/receive` exports. */
import { expect, it } from 'vitest';
import { parseEvent } from '../../library/receive/event.ts';
import { subjectOf } from '../../library/receive/order.ts';
import type { EventOf, TallyhookEvent } from '../../library/receive/receive.ts';
import { exampleOfEvent } from '../../src/resources/delivery/event.ts';
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { eventTypesText } from './event-types.ts';

it('The types of the library are those that the definitions of events give', async () => {
  await expect(eventTypesText()).toMatchFileSnapshot('../../library/receive/events.ts');
});

it('The example of every event type has its form, and a subject that orders it', () => {
  for (const type of EVENT_TYPES) {
    const example = exampleOfEvent(type);
    const event = parseEvent(JSON.stringify(example), String(example.id));
    expect(event.type).toBe(type);
    expect(subjectOf(event), type).toMatch(/^[a-z]+(:.+)?$/);
    expect(subjectOf(event), type).not.toMatch(/undefined|null/);
  }
});

it('The type of an event narrows its data', () => {
  const textOf = (event: TallyhookEvent): string => {
    switch (event.type) {
      case 'wallet.balance_changed':
        return event.data.current.balance;
      case 'operation.settled':
        return event.data.operation_id;
      default:
        return event.type;
    }
  };
  const text = JSON.stringify(exampleOfEvent('operation.settled'));
  const example: EventOf<'operation.settled'> = JSON.parse(text);
  expect(textOf(example)).toBe(example.data.operation_id);
});
