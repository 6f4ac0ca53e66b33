/** The form that watches many targets: pasted lines or a file, sent in parts with progress. */
import { call, type Problem, problemOf } from '../../kit/api.ts';
import { Card, Failed } from '../../kit/elements.ts';
import { countText } from '../../kit/format.ts';
import { html, useRef, useState } from '../../kit/html.ts';
import { type ParsedLines, parseLines, sendInParts } from './targets.ts';

const WRONG_SHOWN = 5;
const EXAMPLE = '0x00112233445566778899aabbccddeeff00112233\n12\n12/34';

export function BulkCard({ done }: { done: () => void }) {
  const [text, setText] = useState('');
  const sent = useSent(done);
  const parsed = parseLines(text);
  const { targets } = parsed;
  const { isRunning, added } = sent;
  const change = (to: string) => {
    setText(to);
    sent.reset();
  };
  const read = async (event: Event) => {
    const file = (event.target as HTMLInputElement).files?.[0];
    if (file) change(await file.text());
  };
  const isRest = added > 0 && added < targets.length;
  return html`<${Card} title="Watch many at once">
    <div class="form">
      <label class="field">
        <span>One per line: a wallet 0x…, a contract 12, or a token 12/34</span>
        <textarea
          rows="6"
          name="lines"
          spellcheck=${false}
          placeholder=${EXAMPLE}
          value=${text}
          disabled=${isRunning}
          onInput=${(event: Event) => change((event.target as HTMLTextAreaElement).value)}
        ></textarea>
      </label>
      <label class="field">
        <span>Or a file of such lines</span>
        <input type="file" accept=".txt,.csv,text/*" onChange=${read} disabled=${isRunning} />
      </label>
      <${Wrong} parsed=${parsed} />
      <${Failed} problem=${sent.problem} />
      ${(isRunning || added > 0) && html`<${Progress} added=${added} of=${targets.length} />`}
      <div class="actions">
        ${isRunning && html`<button type="button" class="quiet" onClick=${sent.stop}>Stop</button>`}
        <button
          type="button"
          disabled=${isRunning || targets.length === 0 || added === targets.length}
          onClick=${() => sent.start(parsed)}
        >
          ${isRest ? 'Go on with' : 'Watch'}
          ${targets.length > 0 && html` ${countText(targets.length - added)}`}
        </button>
      </div>
    </div>
  <//>`;
}

function Progress({ added, of }: { added: number; of: number }) {
  const text = `${countText(added)} of ${countText(of)} are watched`;
  return html`<div>
    <progress max=${of} value=${added} aria-label="Watched"></progress>
    <p class="muted" role="status">${text}</p>
  </div>`;
}

function Wrong({ parsed: { wrong, targets } }: { parsed: ParsedLines }) {
  if (wrong.length === 0) return null;
  const shown = wrong.slice(0, WRONG_SHOWN).map(({ line, text }) => `line ${line}: ${text}`);
  const rest = wrong.length > WRONG_SHOWN ? `, and ${wrong.length - WRONG_SHOWN} more` : '';
  return html`<p class="notice warn" role="alert">
    <span class="break">
      ${countText(wrong.length)} of ${countText(wrong.length + targets.length)} lines are no wallet,
      contract or token and are left out (${shown.join('; ')}${rest})
    </span>
  </p>`;
}

/** How many of the lines were sent; what was sent is not sent again after a failure. */
function useSent(done: () => void) {
  const [added, setAdded] = useState(0);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const isStopped = useRef(false);
  const start = async ({ targets }: ParsedLines) => {
    isStopped.current = false;
    setRunning(true);
    setProblem(undefined);
    try {
      await sendInParts(
        targets,
        added,
        (part) => call('POST', '/api/watches', part),
        (count) => {
          setAdded(count);
          return !isStopped.current;
        },
      );
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setRunning(false);
      done();
    }
  };
  const reset = () => {
    setAdded(0);
    setProblem(undefined);
  };
  const stop = () => {
    isStopped.current = true;
  };
  return { added, isRunning, problem, start, stop, reset };
}
