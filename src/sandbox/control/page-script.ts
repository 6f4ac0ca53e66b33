/** The script of the sandbox's page: sends its buttons and its form, and keeps the world new. */
import { createHash } from 'node:crypto';

/** Shows responses as text and never as markup; the world is the one that the server rendered. */
export const PAGE_SCRIPT = `const form = document.forms.act;
const response = document.getElementById('response');
const selected = () => form.route.selectedOptions[0].dataset;
const renew = async () => {
  const answer = await fetch('/_sandbox');
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  document.getElementById('world').replaceWith(fresh.getElementById('world'));
};
const send = async (method, path, body) => {
  const sent = method === 'POST' ? { body } : {};
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(path, { method, headers, ...sent });
  response.textContent = answer.status + ' ' + (await answer.text());
  await renew();
};
form.route.onchange = () => {
  form.path.value = selected().path;
  form.body.value = selected().body;
};
form.onsubmit = (event) => {
  event.preventDefault();
  return send(selected().method, form.path.value, form.body.value);
};
form.route.onchange();
document.getElementById('orders').onclick = ({ target }) => {
  const { method, path, body, fault } = target.dataset;
  const endpoint = document.getElementById('endpoint').value;
  if (fault) {
    const where = endpoint ? { endpoint } : {};
    return send('POST', '/_sandbox/faults', JSON.stringify({ ...JSON.parse(fault), ...where }));
  }
  if (method) return send(method, path, body);
};
setInterval(() => document.hidden || renew().catch(() => {}), 3000);`;

const HASH = createHash('sha256').update(PAGE_SCRIPT).digest('base64');
/** The content security policy source for the page's one script. */
export const PAGE_SCRIPT_SOURCE = `'sha256-${HASH}'`;
