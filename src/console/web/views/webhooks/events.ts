/** The feed of events as it grows, by long polls; filters are part of the address. */
import { EVENT_TYPES, patternsOf } from '../../../../resources/delivery/events.ts';
import { call, type Problem, pause, problemOf, withQuery } from '../../kit/api.ts';
import { valuesOf } from '../../kit/dialog.ts';
import { Card, Choice, Failed, FilterInput, Pill, Time, View } from '../../kit/elements.ts';
import { html, useEffect, useRef, useState } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { type EventBody, EventFacts, summaryOf } from './body.ts';

interface FeedPage {
  data: EventBody[];
  next_cursor: string;
}

const FIRST = '200';
const KEPT = 500;
const WAIT_S = '25';
const RETRY_MS = 3_000;

export default function Events(_: ViewProps) {
  const { query } = usePlace();
  const [types, subject] = ['types', 'subject'].map((name) => query.get(name) ?? '');
  const [isPaused, setPaused] = useState(false);
  const { rows, problem } = useFeed(types ?? '', isPaused);
  const shown = rows?.filter(({ data }) => !subject || JSON.stringify(data).includes(subject));
  const live = html`<${Pill} tone=${isPaused ? 'warn' : 'good'}>
    ${isPaused ? 'paused' : 'live'}
  <//>`;
  const toggle = html`<button type="button" class="quiet" onClick=${() => setPaused(!isPaused)}>
    ${isPaused ? 'Resume' : 'Pause'}
  </button>`;
  return html`<${View}
    title=${html`Events ${live}`}
    lead="What webhooks carry, the newest first. Apps read the same feed at /api/events."
    actions=${toggle}
  >
    <${Filters} types=${types} subject=${subject} />
    <${Failed} problem=${problem} />
    <${Card}>
      ${!shown && !problem && html`<p class="empty" role="status">Loading…</p>`}
      ${
        shown?.length === 0 &&
        html`<p class="empty">No event fits among the latest ones. New ones appear here.</p>`
      }
      <div class="entries">
        ${shown?.map((event) => html`<${Entry} key=${event.id} event=${event} />`)}
      </div>
    <//>
  <//>`;
}

function Filters({ types, subject }: { types: string; subject: string }) {
  const groups = [...new Set(EVENT_TYPES.map((type) => patternsOf(type)[1]))];
  const find = (event: Event) => {
    setQuery({ subject: valuesOf(event).subject ?? '' });
  };
  return html`<${Card}>
    <form class="filters" onSubmit=${find} role="search">
      <${Choice}
        name="Event type"
        value=${types}
        options=${[
          ['', 'any type'],
          ...groups.map((group) => [group, `all ${group}`]),
          ...EVENT_TYPES.map((type) => [type, type]),
        ]}
        onChange=${(value: string) => setQuery({ types: value })}
      />
      <label class="field grow">
        <span>Address, operation, token or other text in the event</span>
        <${FilterInput} name="subject" type="search" value=${subject} />
      </label>
      <button type="submit">Filter</button>
    </form>
  <//>`;
}

function Entry({ event }: { event: EventBody }) {
  const [isOpen, setOpen] = useState(false);
  const toggle = (change: Event) => setOpen((change.target as HTMLDetailsElement).open);
  return html`<details class="entry" onToggle=${toggle}>
    <summary>
      <${Time} at=${event.timestamp} exact />
      <b>${event.type}</b>
      <span class="grow">${summaryOf(event)}</span>
    </summary>
    ${
      isOpen &&
      html`<${EventFacts} event=${event} />
        <p><a href=${`/deliveries?event_id=${event.id}`}>Its deliveries</a></p>`
    }
  </details>`;
}

/** The latest events and those that come, newest first; begins again when the types change. */
function useFeed(types: string, isPaused: boolean) {
  type State = { types: string; rows?: EventBody[]; problem?: Problem };
  const [state, setState] = useState<State>({ types });
  const place = useRef({ types, cursor: '' });
  useEffect(() => {
    if (isPaused) return;
    if (place.current.types !== types) place.current = { types, cursor: '' };
    const ended = new AbortController();
    follow(ended.signal, place.current, (change) =>
      setState((old) => {
        const before = old.types === types ? (old.rows ?? []) : [];
        if ('problem' in change) return { types, rows: before, problem: change.problem };
        return { types, rows: [...change.rows.toReversed(), ...before].slice(0, KEPT) };
      }),
    );
    return () => ended.abort();
  }, [types, isPaused]);
  return state.types === types ? state : { rows: undefined, problem: undefined };
}

type Change = { rows: EventBody[] } | { problem: Problem };

/** Reads on from the place, which it moves, until the signal aborts. */
async function follow(
  signal: AbortSignal,
  place: { types: string; cursor: string },
  act: (change: Change) => void,
): Promise<void> {
  const { types } = place;
  while (!signal.aborted) {
    const from = place.cursor ? { cursor: place.cursor, wait: WAIT_S } : { last: FIRST };
    const path = withQuery('/api/events', { types, limit: FIRST, ...from });
    try {
      const page = await call<FeedPage>('GET', path, undefined, signal);
      if (signal.aborted) return;
      place.cursor = page.next_cursor;
      act({ rows: page.data });
    } catch (error) {
      if (signal.aborted) return;
      act({ problem: problemOf(error) });
      await pause(RETRY_MS);
    }
  }
}
