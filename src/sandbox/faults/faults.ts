/**
 * Scripted faults. A fault decides whether and when a request is applied, which response it gets,
 * and what happens to the connection.
 */
import { unreachable } from '../../kernel/errors.ts';
import { isObject, jsonText, tryParseJson } from '../../kernel/json.ts';
import type { Answer, Call } from '../endpoints/call.ts';
import { failure, refusalByCode } from '../endpoints/errors.ts';
import type { World } from '../world.ts';
import type { Fault, FaultRow } from './kinds.ts';

/** A response and how it is transmitted. */
export interface PlannedResponse {
  answer: Answer;
  /** Real milliseconds before the first byte is sent or the connection is cut. */
  delayMs: number;
  /** How much is sent; after less than all, the connection is cut. */
  sent: 'all' | 'half' | 'nothing';
  /** Cut by a reset instead of a close. */
  reset: boolean;
}

const NOTHING: Answer = { status: 0, headers: {}, body: '' };

/** Finds the oldest fault that the request meets, and counts it. */
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

/**
 * Plans the response to a request that meets the fault, if any.
 * @param apply applies the request; called at most once
 */
export function planResponse(
  world: World,
  call: Call,
  row: FaultRow | undefined,
  apply: (call: Call) => Answer,
): PlannedResponse {
  if (!row) return complete(apply(call));
  const { fault } = row;
  const instead = (answer: () => Answer, applied: boolean) => {
    if (applied) apply(call);
    return complete(answer());
  };
  switch (fault.kind) {
    case 'lost_answer':
      return { ...complete(apply(call)), sent: 'nothing', reset: fault.reset };
    case 'dropped':
      return { ...complete(NOTHING), sent: 'nothing', reset: fault.reset };
    case 'late': {
      world.timers.add(world.now() + fault.delay_ms, () => apply(call));
      const delayMs = fault.hold ? fault.delay_ms : 0;
      return { answer: NOTHING, delayMs, sent: 'nothing', reset: fault.reset };
    }
    case 'delay':
      return { ...complete(apply(call)), delayMs: fault.delay_ms };
    case 'throttle':
      return instead(() => throttled(world, call, fault), fault.applied);
    case 'status':
      return instead(() => statusAnswer(call, fault), fault.applied);
    case 'error':
      return instead(() => scriptedError(world, call, fault), fault.applied);
    case 'truncated':
      return { ...complete(apply(call)), sent: 'half', reset: fault.reset };
    case 'garbled':
      return complete(garbled(apply(call)));
    case 'without':
      return complete(without(apply(call), fault.member));
    case 'stale_list':
      return complete(apply({ ...call, ageMs: fault.age_ms }));
    case 'shifting_pages':
      return complete(apply({ ...call, shift: row.hits }));
    default:
      return unreachable(fault);
  }
}

/** A 429 or 503 with Retry-After in the given form, in whole seconds. */
export function throttled(
  world: World,
  call: Call,
  options: Pick<Fault & { kind: 'throttle' }, 'status' | 'retry_after' | 'retry_after_s'>,
): Answer {
  const { status, retry_after, retry_after_s } = options;
  const answer = failure(call.family, status, 'Too many requests');
  if (retry_after === 'none') return answer;
  const date = new Date(world.now() + retry_after_s * 1000).toUTCString();
  const value = retry_after === 'date' ? date : String(retry_after_s);
  return { ...answer, headers: { ...answer.headers, 'retry-after': value } };
}

function complete(answer: Answer): PlannedResponse {
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
  const texts = path.split('*').map((text) => text.replace(/[^\w/-]/g, '\\$&'));
  return new RegExp(`^${texts.join('.*')}$`, 's');
}

/** A documented error; values that the script leaves out are made up. */
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
  return refusalByCode(call.family, fault.code, figures).answer(rules);
}

function statusAnswer(call: Call, fault: Fault & { kind: 'status' }): Answer {
  if (fault.body === undefined) return failure(call.family, fault.status);
  const headers = { 'content-type': fault.content_type };
  return { status: fault.status, headers, body: fault.body };
}

function without(answer: Answer, member: string): Answer {
  const body = tryParseJson(answer.body);
  if (!isObject(body) || !isObject(body.data)) return answer;
  const { [member]: _, ...data } = body.data;
  return { ...answer, body: jsonText({ ...body, data }) };
}

/** Replaces the second half of the body by text that is not JSON. */
function garbled(answer: Answer): Answer {
  const half = answer.body.slice(0, Math.ceil(answer.body.length / 2));
  return { ...answer, body: `${half}\u0000<html>` };
}
