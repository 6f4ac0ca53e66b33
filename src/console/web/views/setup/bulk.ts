/** The form that watches many targets: a CSV file or pasted lines, checked first, then added. */
import type { Shown } from '../../../../resources/resource.ts';
import type { watchLine } from '../../../../resources/results.ts';
import { may, Problem, problemOf, send, withQuery } from '../../kit/api.ts';
import { Card, Failed } from '../../kit/elements.ts';
import { countText, durationText } from '../../kit/format.ts';
import { html, useRef, useState } from '../../kit/html.ts';
import { type Csv, csvOf } from './targets.ts';

const EXAMPLE = `addr,contract_id,token_id
0x00112233445566778899aabbccddeeff00112233,,
,12,
,12,34`;
const REFUSED_SHOWN = 5;

type Line = Shown<typeof watchLine>;
type Counts = NonNullable<Line['progress']>;
type Summary = NonNullable<Line['summary']>;
interface Refused {
  line: number;
  why: string;
}

export function BulkCard({ done }: { done: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const bulk = useBulk(done);
  const { isRunning, summary, csv } = bulk;
  const given = (): Blob => {
    const fields = form.current ? new FormData(form.current) : new FormData();
    const file = fields.get('file');
    if (file instanceof File && file.size > 0) return file;
    return new Blob([String(fields.get('lines') ?? '')]);
  };
  const check = async (event: Event) => {
    event.preventDefault();
    bulk.run(await csvOf(given()), true);
  };
  const added = (summary?.dry_run && summary.added) || 0;
  const isChecked = csv && added > 0;
  return html`<${Card}>
    <details>
    <summary><b>Watch many at once</b></summary>
    <form class="form" ref=${form} onSubmit=${check} onInput=${bulk.reset}>
      <div class="columns">
        <div>
          <p>
            A CSV file of up to a million lines. Its first line names the columns; each further line
            fills those of its target: a wallet, a whole contract, or one token.
          </p>
          <pre tabindex="0">${EXAMPLE}</pre>
          <p class="muted">Without such a first line, each line is 0x…, 12 or 12/34.</p>
        </div>
        <div class="form">
          <label class="field">
            <span>File</span>
            <input type="file" name="file" accept=".txt,.csv,text/*" disabled=${isRunning} />
          </label>
          <label class="field">
            <span>Or lines</span>
            <textarea rows="6" name="lines" spellcheck=${false} disabled=${isRunning}></textarea>
          </label>
        </div>
      </div>
      <${Outcome} ...${bulk} />
      <div class="actions">
        ${isRunning && html`<button type="button" class="quiet" onClick=${bulk.stop}>Stop</button>`}
        <button
          type="submit"
          class=${isChecked ? 'quiet' : ''}
          disabled=${isRunning || !may('manage')}
        >
          Check
        </button>
        ${
          isChecked &&
          html`<button type="button" disabled=${isRunning} onClick=${() => bulk.run(csv, false)}>
            Watch ${countText(added)}
          </button>`
        }
      </div>
    </form>
    </details>
  <//>`;
}

type Bulk = ReturnType<typeof useBulk>;

function Outcome({ isRunning, isDry, counts, total, summary, refused, problem }: Bulk) {
  const text = isDry
    ? `${countText(counts?.lines ?? 0)} lines are checked`
    : `${countText(counts?.lines ?? 0)} of ${countText(total)} lines are done`;
  return html`<${Failed} problem=${problem} />
    ${
      isRunning &&
      html`<div>
        <progress max=${total || 1} value=${counts?.lines ?? 0} aria-label="Progress"></progress>
        <p class="muted" role="status">${text}</p>
      </div>`
    }
    ${summary && html`<p class="notice good" role="status">${summaryText(summary)}</p>`}
    ${
      refused.length > 0 &&
      html`<div class="notice warn">
        <ul class="break">
          ${refused
            .slice(0, REFUSED_SHOWN)
            .map(({ line, why }) => html`<li>line ${line}: ${why}</li>`)}
        </ul>
      </div>`
    }`;
}

function summaryText({ lines, added = 0, watched = 0, refused, ...rest }: Summary): string {
  const would = rest.dry_run;
  const parts = [
    `${countText(added)} ${would ? 'would be added' : 'are added'}`,
    watched > 0 && `${countText(watched)} ${watched === 1 ? 'is' : 'are'} watched already`,
    refused > 0 && `${countText(refused)} ${would ? 'would be' : 'are'} refused`,
  ].filter(Boolean);
  const age = durationText(rest.observation_age_max_ms);
  return `Of ${countText(lines)} lines ${parts.join(', ')}. No target ${
    would ? 'would be' : 'is'
  } without a poll for longer than ${age}.`;
}

/** What was sent last, and how far it is. */
function useBulk(done: () => void) {
  interface State {
    csv?: Csv;
    isRunning: boolean;
    isDry: boolean;
    counts?: Counts;
    /** Lines that the check has counted. */
    total: number;
    summary?: Summary;
    refused: Refused[];
    problem?: Problem;
  }
  const idle: State = { isRunning: false, isDry: true, total: 0, refused: [] };
  const [state, setState] = useState<State>(idle);
  const stopped = useRef(new AbortController());
  const run = async (csv: Csv, isDry: boolean) => {
    const total = isDry ? 0 : (state.summary?.lines ?? 0);
    stopped.current = new AbortController();
    const { signal } = stopped.current;
    const refused: Refused[] = [];
    setState({ csv, isRunning: true, isDry, total, refused });
    let end: Partial<State> = {};
    try {
      const path = withQuery('/api/watches', { dry_run: isDry ? 'true' : '' });
      for await (const read of linesOf(await send('POST', path, csv.file, signal))) {
        const why = read.problem?.detail ?? read.problem?.title ?? '';
        if (read.line !== undefined) refused.push({ line: read.line - csv.added, why });
        else if (read.progress) setState((old) => ({ ...old, counts: read.progress as Counts }));
        else if (read.problem) end = { ...end, problem: new Problem(0, '', why) };
        if (read.summary) end = { ...end, summary: read.summary };
      }
    } catch (error) {
      if (!signal.aborted) end = { problem: problemOf(error) };
    }
    setState((old) => ({ ...old, ...end, isRunning: false, refused }));
    if (!isDry) done();
  };
  return { ...state, run, stop: () => stopped.current.abort(), reset: () => setState(idle) };
}

/** The lines of an answer while it arrives. */
async function* linesOf(answer: Response): AsyncGenerator<Line> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    const lines = (rest + read.value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}
