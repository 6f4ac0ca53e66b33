/**
 * The part that both scripts share: it asks for a key, keeps it in the tab, and asks the API with
 * it. `connect(show)` calls `show` once there is a key, and again after another was typed in.
 */
export const KEY_SCRIPT = `
const at = (id) => document.getElementById(id);
const KEY = 'tallyhook_key';
const ask = async (path, method = 'GET', body) => {
  const headers = { authorization: 'Bearer ' + sessionStorage.getItem(KEY) };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(path, { method, headers, body: text });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const said = problem.detail || problem.title || 'The daemon answered ' + answer.status;
  const error = new Error(said);
  error.status = answer.status;
  throw error;
};
const askForKey = (why) => {
  sessionStorage.removeItem(KEY);
  at('key-form').hidden = false;
  at('key-problem').textContent = why;
  at('key').focus();
};
const say = (text) => {
  at('problem').hidden = text === '';
  at('problem').textContent = text;
};
const pill = (text, mood) => {
  at('state').textContent = text;
  at('state').className = 'pill ' + mood;
};
const connect = (show) => {
  const attempt = async () => {
    try {
      await show();
      at('key-form').hidden = true;
      say('');
    } catch (error) {
      if (error.status === 401 || error.status === 403) askForKey(error.message);
      else {
        pill('not connected', 'bad');
        say(error.status ? error.message : 'The daemon does not answer.');
      }
    }
  };
  at('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, at('key').value.trim());
    at('key').value = '';
    attempt();
  });
  if (sessionStorage.getItem(KEY)) attempt();
  else askForKey('');
  return attempt;
};
`;
