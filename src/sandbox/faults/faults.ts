/**
 * Scripted misbehaviour, as one step around the answering of a request. It decides whether and when
 * the request is applied, what its answer becomes, and what happens to the connection.
 */
import { unreachable } from '../../kernel/assert.ts';
import type { Answer, Call } from '../endpoints/call.ts';
import { failure, refusalNamed } from '../endpoints/refusals.ts';
import type { World } from '../world.ts';
import type { Fault, FaultRow } from './kinds.ts';

/** What goes back over the connection, and how. */
export interface Delivery {
  answer: Answer;
  /** Real milliseconds before anything is sent or cut. */
  delayMs: number;
  /** Whether all of it, half of it or nothing is sent before the connection is cut. */
  sent: 'all' | 'half' | 'nothing';
  /** A cut is a reset instead of a close. */
  reset: boolean;
}

type Proceed = (call: Call) => Answer;

const NOTHING: Answer = { status: 0, headers: {}, body: '' };

/** The fault that this request meets, counted; or undefined. The oldest one comes first. */
export function takeFault(world: World, call: Call): FaultRow | undefined {
  for (const row of world.faults.values()) {
    if (row.left === 0 || !matches(row.fault, call)) continue;
    const key = row.fault_id.toString();
    if (row.skip > 0) {
      world.faults.put(key, { ...row, skip: row.skip - 1 });
      continue;
    }
    const met = { ...row, left: row.left - 1, hits: row.hits + 1 };
    world.faults.put(key, met);
    return met;
  }
  return undefined;
}

/** Answers the request under a fault. `proceed` applies it, once or never. */
export function underFault(
  world: World,
  call: Call,
  row: FaultRow | undefined,
  proceed: Proceed,
): Delivery {
  if (!row) return delivered(proceed(call));
  const { fault } = row;
  switch (fault.kind) {
    case 'lost_answer':
      return { ...delivered(proceed(call)), sent: 'nothing', reset: fault.reset };
    case 'dropped':
      return { ...delivered(NOTHING), sent: 'nothing', reset: fault.reset };
    case 'late': {
      world.agenda.add(world.now() + fault.delay_ms, () => proceed(call));
      const delayMs = fault.hold ? fault.delay_ms : 0;
      return { answer: NOTHING, delayMs, sent: 'nothing', reset: fault.reset };
    }
    case 'delay':
      return { ...delivered(proceed(call)), delayMs: fault.delay_ms };
    case 'throttle':
      if (fault.applied) proceed(call);
      return delivered(throttled(world, call, fault));
    case 'status':
      if (fault.applied) proceed(call);
      return delivered(statusAnswer(call, fault));
    case 'error':
      if (fault.applied) proceed(call);
      return delivered(scriptedError(world, call, fault));
    case 'truncated':
      return { ...delivered(proceed(call)), sent: 'half', reset: fault.reset };
    case 'garbled':
      return delivered(garbled(proceed(call)));
    case 'stale_list':
      return delivered(proceed({ ...call, ageMs: fault.age_ms }));
    case 'shifting_pages':
      return delivered(proceed({ ...call, shift: row.hits }));
    default:
      return unreachable(fault);
  }
}

/** A refusal for now, with a Retry-After in the form that is asked for, in whole seconds. */
export function throttled(
  world: World,
  call: Call,
  given: Pick<Fault & { kind: 'throttle' }, 'status' | 'retry_after' | 'retry_after_s'>,
): Answer {
  const { status, retry_after, retry_after_s } = given;
  const answer = failure(call.family, status, 'Too many requests');
  if (retry_after === 'none') return answer;
  const date = new Date(world.now() + retry_after_s * 1000).toUTCString();
  const value = retry_after === 'date' ? date : String(retry_after_s);
  return { ...answer, headers: { ...answer.headers, 'retry-after': value } };
}

function delivered(answer: Answer): Delivery {
  return { answer, delayMs: 0, sent: 'all', reset: false };
}

function matches(fault: Fault, call: Call): boolean {
  const { endpoint, method, path, contains } = fault;
  if (endpoint !== undefined && endpoint !== call.endpoint) return false;
  if (method !== undefined && method.toUpperCase() !== call.method) return false;
  if (path !== undefined && !patternOf(path).test(call.path)) return false;
  return contains === undefined || `${call.path}?${call.query}\n${call.body}`.includes(contains);
}

function patternOf(path: string): RegExp {
  const parts = path.split('*').map((part) => part.replace(/[^\w/-]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** A documented error that nobody earned: figures that the script does not name are plausible. */
function scriptedError(world: World, call: Call, fault: Fault & { kind: 'error' }): Answer {
  const rules = world.switches();
  const figures = {
    amount: 0n,
    sendAmount: rules.transfer_min,
    transferMin: rules.transfer_min,
    transferMax: rules.transfer_max,
    onedayLimit: rules.oneday_limit,
    onedaySendAmount: rules.oneday_limit,
    recvAmount: '0.5',
    method: call.endpoint.replaceAll('_', '-'),
    ...fault.figures,
  };
  return refusalNamed(call.family, fault.code, figures).answer(rules);
}

function statusAnswer(call: Call, fault: Fault & { kind: 'status' }): Answer {
  if (fault.body === undefined) return failure(call.family, fault.status);
  return { status: fault.status, headers: { 'content-type': 'text/html' }, body: fault.body };
}

/** The first half of the body, and then what no parser reads. */
function garbled(answer: Answer): Answer {
  const half = answer.body.slice(0, Math.ceil(answer.body.length / 2));
  return { ...answer, body: `${half}\u0000<html>` };
}
