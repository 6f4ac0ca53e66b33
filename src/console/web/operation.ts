/** Script of one operation: fields, history and evidence; deciding, approving, cancelling. */
import { ELEMENT_SCRIPT } from './elements.ts';
import { KEY_SCRIPT } from './key.ts';

export const OPERATION_SCRIPT = `'use strict';${KEY_SCRIPT}${ELEMENT_SCRIPT}
const path = '/api/operations/' + encodeURIComponent(location.pathname.split('/').pop());
const FACTS = ['state', 'outcome', 'source', 'reference', 'idempotency_key', 'from_addr', 'to_addr',
  'operation_no', 'contract_id', 'token_id', 'amount', 'fee_amount', 'reason_type', 'tx_app_no',
  'tx_log_no', 'tx_hash', 'recorded_at', 'sent_at', 'answered_at', 'effective_at',
  'effective_basis', 'settled_at', 'expires_at'];
const ADVICE = {
  undecided: 'The evidence does not decide this operation. Check the records of the service and ' +
    'propose its outcome with a reason. The outcome changes when another owner approves.',
  queued: 'The operation waits for the service and is sent before it expires, unless cancelled.',
};
const AGAIN = 'The outcome was inferred, reported or decided. If it is wrong, propose the other.';
const textOf = (value) => (value === null ? 'none' : JSON.stringify(value, null, 2));
let newest;
const showActions = (operation) => {
  const { state, effective_basis: basis, decisions } = operation;
  const resolved = ['executed', 'not_executed', 'settled'].includes(state) && basis !== 'answer';
  const decidable = state === 'undecided' || resolved;
  newest = decisions.find((decision, n) => n === decisions.length - 1 && !decision.approved_at);
  at('act').hidden = !decidable && state !== 'queued';
  at('advice').textContent = ADVICE[state] || AGAIN;
  at('decide').hidden = !decidable;
  at('executed').hidden = resolved && state !== 'not_executed';
  at('not_executed').hidden = state === 'not_executed';
  at('cancel').hidden = state !== 'queued';
  at('approve').hidden = !newest || !decidable;
  if (newest) at('approve').textContent = 'Approve number ' + newest.n + ': ' + newest.outcome;
};
const show = (operation) => {
  at('title').textContent = operation.kind + ' ' + operation.id;
  facts('facts', FACTS.filter((name) => operation[name] !== null).map((name) =>
    [name.replaceAll('_', ' '), operation[name]]));
  showActions(operation);
  const who = (by, when) => (by ? by + ', ' + time(when) : 'not yet');
  fill('decisions', operation.decisions.map((d) => row(String(d.n), d.outcome, d.reason,
    who(d.proposed_by, d.proposed_at), who(d.approved_by, d.approved_at))), 5, 'None.');
  fill('transitions', operation.transitions.map((t) => row(time(t.at), t.from_state || '–',
    t.to_state, t.cause)), 4, 'None.');
  fill('sends', operation.sends.map((s) => row(String(s.n), time(s.started_at),
    time(s.deadline_at), s.after || '–')), 4, 'Not sent.');
  at('evidence').textContent = textOf(operation.evidence);
  at('pre_image').textContent = textOf(operation.pre_image);
  pill(operation.state, operation.state === 'undecided' ? 'warn' : '');
  at('board').hidden = false;
};
const refresh = connect(async () => show(await (await callApi(path)).json()));
const act = (id, method, place, body) =>
  at(id).addEventListener('click', async () => {
    try {
      await callApi(path + place, method, body && body());
      await refresh();
    } catch (error) {
      showProblem(error.message);
    }
  });
for (const outcome of ['executed', 'not_executed'])
  act(outcome, 'POST', '/decide', () => ({ outcome, reason: at('reason').value.trim() }));
act('approve', 'POST', '/approve', () => ({ n: newest.n, outcome: newest.outcome }));
act('cancel', 'DELETE', '');
`;
