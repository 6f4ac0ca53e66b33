/**
 * What is stored of the data of an event: the names of its members once for all events with the
 * same ones, and their values. The function `event_body` of ../../drizzle/0006_event_bodies.sql
 * makes the body from it, the same bytes for every endpoint, every attempt and the feed.
 */
import { createHash } from 'node:crypto';
import { jsonText } from '../kernel/json.ts';
import type { EventDraft } from './events.ts';

export interface EventParts {
  names: string[];
  row: { shape: bigint; data: string };
}

export function partsOf({ subject, data }: Pick<EventDraft, 'subject' | 'data'>): EventParts {
  const own = JSON.stringify(subject.slice(subject.indexOf(':') + 1));
  const members = Object.entries(data).flatMap(([name, value]) => {
    // JSON text has no line feed of its own, and undefined is no member.
    const text: string | undefined = jsonText(value);
    if (text === undefined) return [];
    return [{ name, line: text === 'null' ? '' : text === own ? '$' : text }];
  });
  const names = members.map(({ name }) => name);
  return { names, row: { shape: shapeOf(names), data: members.map((m) => m.line).join('\n') } };
}

/** By the names: as many as event types have kinds of data. */
const known = new Map<string, bigint>();

function shapeOf(names: readonly string[]): bigint {
  const text = jsonText(names);
  let shape = known.get(text);
  if (shape === undefined) {
    shape = createHash('sha256').update(text).digest().readBigInt64BE();
    known.set(text, shape);
  }
  return shape;
}
