/** Script: creates elements; content is always set as text. */
export const ELEMENT_SCRIPT = `
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const row = (...cells) => {
  const made = element('tr');
  for (const cell of cells) {
    const td = element('td');
    td.append(cell);
    made.append(td);
  }
  return made;
};
const fill = (id, rows, width, empty) => {
  const none = row(element('span', empty, 'muted'));
  none.firstChild.colSpan = width;
  at(id).replaceChildren(...(rows.length > 0 ? rows : [none]));
};
const time = (text) => (text ? text.slice(0, 16).replace('T', ' ') + ' UTC' : '–');
const link = (href, text) => {
  const made = element('a', text);
  made.href = href;
  return made;
};
const facts = (id, pairs) =>
  at(id).replaceChildren(
    ...pairs.flatMap(([name, value]) => [element('dt', name), element('dd', value)]),
  );
`;
