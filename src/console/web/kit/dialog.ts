/** Orders to the API: a button that opens a form, says what will happen, and shows a refusal. */
import type { Scope } from '../../../resources/admin/key.ts';
import { isOwn, may, type Problem, problemOf } from './api.ts';
import { html, useEffect, useRef, useState } from './html.ts';

/** Scopes for what moves money by decision. */
export const DECIDE = ['decide'] as const;

export interface Field {
  name: string;
  label: string;
  /** `area` for several lines, `choice` for one of `options`, `check` for yes or no. */
  type?: 'text' | 'password' | 'area' | 'choice' | 'check' | 'number' | 'datetime-local';
  options?: readonly (readonly [value: string, text: string])[];
  value?: string;
  hint?: string;
  optional?: boolean;
}

/** The values of the fields, trimmed; an empty optional one is left out. */
export type Values = Record<string, string>;

/** Why an order is given; the API stores it. */
export const REASON: Field = { name: 'reason', label: 'Reason', type: 'area' };

/** What a form holds that is submitted; the browser does nothing with it. */
export function valuesOf(event: Event): Values {
  event.preventDefault();
  const values: Values = {};
  for (const [name, value] of new FormData(event.target as HTMLFormElement)) {
    const text = String(value).trim();
    if (text) values[name] = text;
  }
  return values;
}

interface OrderProps {
  /** Text of the button, and of the button that confirms. */
  label: string;
  /** What happens, in a sentence or two. */
  text: unknown;
  fields?: readonly Field[];
  /** danger: it moves money or cannot be taken back. */
  kind?: 'plain' | 'danger' | 'quiet';
  disabled?: boolean;
  /** Scopes of which the key must have one; without one the button says so. */
  needs?: readonly Scope[];
  /** Who proposed what this approves. Their own proposal waits for another owner. */
  proposedBy?: string | undefined;
  /** Whose it is: others cannot change it without the scope admin. */
  ownedBy?: string | undefined;
  /** Carries the order out. @throws Problem, which is shown */
  order: (values: Values) => Promise<unknown>;
  /** Called after it was carried out. */
  done?: () => void;
}

/** A button whose order is given in a dialog. */
export function Order({ label, text, fields = [], kind = 'plain', ...props }: OrderProps) {
  const [open, setOpen] = useState(false);
  const [warned, setWarned] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const atFirst = useRef('');
  useEffect(() => {
    setWarned(false);
    if (!open) return;
    dialog.current?.showModal();
    const form = dialog.current?.querySelector('form');
    if (form) atFirst.current = filledIn(form);
  }, [open]);
  // What was typed is not lost by one Escape.
  const keep = (event: Event) => {
    const form = dialog.current?.querySelector('form');
    if (warned || !form || filledIn(form) === atFirst.current) return;
    event.preventDefault();
    setWarned(true);
  };
  const why = refusalOf(props);
  if (why) return html`<${Refused} label=${label} why=${why} />`;
  return html`<button
      type="button"
      class=${kind}
      disabled=${props.disabled}
      onClick=${() => setOpen(true)}
    >
      ${label}
    </button>
    ${
      open &&
      html`<dialog
        ref=${dialog}
        onCancel=${keep}
        onClose=${() => setOpen(false)}
        aria-label=${label}
      >
        <h2>${label}</h2>
        <div class="muted">${text}</div>
        ${
          warned &&
          html`<p class="notice warn" role="alert">Press Escape again to drop what you typed.</p>`
        }
        <${Form}
          fields=${fields}
          label=${label}
          kind=${kind === 'danger' ? 'danger' : 'plain'}
          order=${props.order}
          done=${() => {
            dialog.current?.close();
            props.done?.();
          }}
          cancel=${() => dialog.current?.close()}
        />
      </dialog>`
    }`;
}

/** Why the one who is signed in cannot give an order. */
function refusalOf({
  needs = ['manage'],
  proposedBy,
  ownedBy,
}: Pick<OrderProps, 'needs' | 'proposedBy' | 'ownedBy'>): string | undefined {
  if (!may(...needs)) return `It needs a key with the scope ${needs.join(' or ') || 'admin'}.`;
  if (proposedBy !== undefined && isOwn(proposedBy)) return 'It waits for another owner.';
  if (ownedBy !== undefined && !isOwn(ownedBy) && !may()) return `It belongs to ${ownedBy}.`;
  return undefined;
}

/** A button that cannot be pressed, and on focus says why. */
function Refused({ label, why }: { label: string; why: string }) {
  return html`<span class="refused">
    <button type="button" class="quiet" aria-disabled="true" aria-description=${why} title=${why}>
      ${label}
    </button>
    <span class="why" aria-hidden="true">${why}</span>
  </span>`;
}

/** What the fields of a form hold. */
function filledIn(form: HTMLFormElement): string {
  return JSON.stringify([...new FormData(form)]);
}

/** What is wrong with a field: named by the problem, or the first word of its text. */
function faultOf({ name }: Field, problem: Problem | undefined): string | undefined {
  if (!problem) return undefined;
  const { fields, message, code } = problem;
  const isOf = code.startsWith(`${name}_`) || message.split(/\W/)[0] === name;
  return fields[name] ?? (isOf ? message : undefined);
}

/** The fields and the buttons of an order; also used outside of a dialog. */
export function Form({
  fields,
  label,
  kind = 'plain',
  order,
  done,
  cancel,
  needs,
  ownedBy,
}: {
  fields: readonly Field[];
  label: string;
  kind?: 'plain' | 'danger';
  order: (values: Values) => Promise<unknown>;
  done?: () => void;
  cancel?: () => void;
  /** As of an order; without it any key may submit. */
  needs?: readonly Scope[];
  ownedBy?: string | undefined;
}) {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [running, setRunning] = useState(false);
  const why = needs && refusalOf({ needs, ownedBy });
  const submit = async (event: Event) => {
    const values = valuesOf(event);
    setRunning(true);
    try {
      await order(values);
      setProblem(undefined);
      done?.();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setRunning(false);
    }
  };
  return html`<form class="form" onSubmit=${submit}>
    ${fields.map(
      (field) =>
        html`<${Input} key=${field.name} field=${field} problem=${faultOf(field, problem)} />`,
    )}
    ${problem && html`<p class="notice bad" role="alert">${problem.message}</p>`}
    <div class="actions">
      ${cancel && html`<button type="button" class="quiet" onClick=${cancel}>Cancel</button>`}
      ${
        why
          ? html`<${Refused} label=${label} why=${why} />`
          : html`<button type="submit" class=${kind} disabled=${running}>${label}</button>`
      }
    </div>
  </form>`;
}

function Input({ field, problem }: { field: Field; problem?: string | undefined }) {
  const { name, label, type = 'text', value = '', hint, optional = false } = field;
  const required = !optional;
  const invalid = problem === undefined ? {} : { 'aria-invalid': 'true' };
  const step = type === 'datetime-local' ? { step: 'any' } : {};
  const common = { name, required, autocomplete: 'off', ...step, ...invalid };
  const input =
    type === 'area'
      ? html`<textarea rows="3" ...${common}>${value}</textarea>`
      : type === 'choice'
        ? html`<select ...${common}>
            ${(field.options ?? []).map(
              ([of, text]) => html`<option value=${of} selected=${of === value}>${text}</option>`,
            )}
          </select>`
        : html`<input type=${type} ...${common} defaultValue=${value} spellcheck=${false} />`;
  if (type === 'check')
    return html`<label class="check">
      <input type="checkbox" name=${name} value="yes" defaultChecked=${value === 'yes'} /> ${label}
    </label>`;
  return html`<label class="field">
    <span>${label}${optional && html` <span class="muted">(optional)</span>`}</span>
    ${input} ${hint && html`<span class="muted">${hint}</span>`}
    ${problem && html`<span class="bad-text">${problem}</span>`}
  </label>`;
}
