/**
 * Script of all pages: asks the user for a key, stores it in the tab, and calls the API with it.
 * `connect(show)` calls `show` with a stored key, and again after the user entered a key.
 */
export const KEY_SCRIPT = `
const at = (id) => document.getElementById(id);
const KEY = 'tallyhook_key';
const callApi = async (path, method = 'GET', body) => {
  const headers = { authorization: 'Bearer ' + sessionStorage.getItem(KEY) };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(path, { method, headers, body: text });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const error = new Error(problem.detail || problem.title || 'HTTP status ' + answer.status);
  error.status = answer.status;
  throw error;
};
const askForKey = (why) => {
  sessionStorage.removeItem(KEY);
  at('key-form').hidden = false;
  at('key-problem').textContent = why;
  at('key').focus();
};
const showProblem = (text) => {
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
      showProblem('');
    } catch (error) {
      if (error.status === 401 || error.status === 403) askForKey(error.message);
      else {
        pill('not connected', 'bad');
        showProblem(error.status ? error.message : 'The daemon does not respond.');
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
