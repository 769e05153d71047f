// SPDX-License-Identifier: Apache-2.0
// A table of any number of rows, of which those are made that can be seen. It stays a table for screen readers: rows say which of
// how many they are, columns how they are sorted; arrow keys walk through it.
import {h, fill} from './dom.js';

const HEIGHT = 38;  // of a row, as in style.css
const AROUND = 10;  // rows that are made above and below those seen

export function compare(a, b) {
  const noA = a === undefined || a === null || Number.isNaN(a);
  const noB = b === undefined || b === null || Number.isNaN(b);
  if (noA || noB) return noA - noB;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), undefined, {numeric: true});
}

// `columns`: {name, title, value(row), cell(row)?, isNumber?}. `sort` is "name" or "-name". `open(row)` when one is chosen;
// `chosen` holds keys that are marked, `marked(key, on)` is told of changes when rows can be marked.
export class Table {
  constructor({label, columns, sort, sorted, open, marks, marked, nothing}) {
    Object.assign(this, {label, columns, sort, sorted, open, marks, marked});
    this.items = [];
    this.body = h('tbody');
    this.headRow = h('tr');
    this.table = h('table', {class: 'virtual', 'aria-label': label}, h('thead', {}, this.headRow), this.body);
    this.nothing = h('div', {hidden: true}, nothing);
    this.scroll = h('div', {class: 'scroll', tabindex: -1}, this.table, this.nothing);
    this.element = this.scroll;
    this.scroll.addEventListener('scroll', () => this.later());
    this.body.addEventListener('keydown', event => this.walk(event));
    this.head();
  }

  head() {
    fill(this.headRow, this.marked && h('th', {scope: 'col'}, h('span', {class: 'hidden'}, 'Compare')), this.columns.map(column => {
      const isUp = this.sort === column.name;
      const isDown = this.sort === '-' + column.name;
      return h('th', {scope: 'col', class: column.isNumber ? 'num' : '', 'aria-sort': isUp ? 'ascending' : isDown ? 'descending' : null},
        h('button', {type: 'button', class: 'plain', 'data-column': column.name, on: {click: () => this.sortBy(column.name)}}, column.title,
          h('span', {'aria-hidden': 'true'}, isUp ? '↑' : isDown ? '↓' : '')));
    }));
  }

  sortBy(name) {
    this.sort = this.sort === name ? '-' + name : name;
    this.head();
    this.headRow.querySelector('[data-column="' + CSS.escape(name) + '"]')?.focus();
    this.sorted?.(this.sort);
    this.set(this.rows);
  }

  order(rows) {
    const name = this.sort?.replace(/^-/, '');
    const column = this.columns.find(each => each.name === name);
    if (!column) return rows;
    const sign = this.sort.startsWith('-') ? -1 : 1;
    const keyed = rows.map(row => [column.value(row), row]);
    const isMissing = value => value === undefined || value === null || Number.isNaN(value);
    // What has no value stands at the end, however it is sorted.
    keyed.sort(([a], [b]) => isMissing(a) || isMissing(b) ? isMissing(a) - isMissing(b) : sign * compare(a, b));
    return keyed.map(([, row]) => row);
  }

  // `groupOf(row)` makes groups, each under a line of `groupCells(rows)`: texts by column.
  set(rows, groupOf = this.groupOf, groupCells = this.groupCells) {
    Object.assign(this, {rows, groupOf, groupCells});
    const ordered = this.order(rows);
    if (groupOf) {
      const groups = new Map();
      for (const row of ordered) {
        const name = String(groupOf(row) ?? '–');
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(row);
      }
      this.items = [...groups].flatMap(([name, members]) => [{group: name, members}, ...members]);
    } else {
      this.items = ordered;
    }
    this.table.setAttribute('aria-rowcount', this.items.length + 1);
    this.nothing.hidden = rows.length > 0;
    this.render();
  }

  later() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    const focused = document.activeElement?.closest('tr')?.dataset.key;
    const part = document.activeElement?.dataset.part;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / HEIGHT) - AROUND);
    const count = Math.ceil((this.scroll.clientHeight || 700) / HEIGHT) + 2 * AROUND;
    const last = Math.min(this.items.length, first + count);
    const width = this.columns.length + (this.marked ? 1 : 0);
    const spacer = rows => rows > 0 && h('tr', {class: 'spacer', 'aria-hidden': 'true'}, h('td', {colspan: width, style: {height: rows * HEIGHT + 'px'}}));
    fill(this.body, spacer(first), this.items.slice(first, last).map((item, i) => item.group === undefined ? this.row(item, first + i) : this.group(item, first + i)),
      spacer(this.items.length - last));
    if (focused) this.focus(focused, part);
  }

  focus(key, part = 'open') {
    this.body.querySelector('tr[data-key="' + CSS.escape(key) + '"] [data-part="' + CSS.escape(part) + '"]')?.focus({preventScroll: true});
  }

  row(row, index) {
    return h('tr', {'aria-rowindex': index + 2, 'data-key': row.key, class: this.current === row.key ? 'chosen' : ''},
      this.marked && h('td', {}, h('input', {type: 'checkbox', 'data-part': 'mark', 'aria-label': 'Compare ' + row.name, checked: this.marks.has(row.key),
        on: {change: event => this.marked(row.key, event.target.checked)}})),
      this.columns.map((column, i) => {
        const content = column.cell ? column.cell(row) : column.value(row) ?? '–';
        const cell = h(i === 0 ? 'th' : 'td', {class: column.isNumber ? 'num' : '', scope: i === 0 ? 'row' : null});
        if (typeof content === 'string') cell.title = content;
        cell.append(i === 0 && this.open ? this.opener(row, content) : content);
        return cell;
      }));
  }

  opener(row, content) {
    return row.href ? h('a', {href: row.href, 'data-part': 'open'}, content)
      : h('button', {type: 'button', class: 'plain', 'data-part': 'open', style: {color: 'var(--accent)'}, on: {click: () => this.open(row)}}, content);
  }

  group({group, members}, index) {
    const cells = this.groupCells?.(members) ?? {};
    return h('tr', {class: 'group', 'aria-rowindex': index + 2}, this.marked && h('td'),
      this.columns.map((column, i) => h('td', {class: column.isNumber ? 'num' : ''}, i === 0 ? group + ' (' + members.length + ')' : cells[column.name] ?? '')));
  }

  walk(event) {
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15}[event.key];
    const row = event.target.closest('tr');
    if (!step || !row?.dataset.key) return;
    event.preventDefault();
    const at = this.items.findIndex(item => item.key === row.dataset.key);
    let next = Math.min(this.items.length - 1, Math.max(0, at + step));
    while (this.items[next]?.group !== undefined && next + Math.sign(step) in this.items) next += Math.sign(step);
    const item = this.items[next];
    if (!item?.key) return;
    const top = next * HEIGHT;
    const room = this.scroll.clientHeight - 2 * HEIGHT;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top > this.scroll.scrollTop + room) this.scroll.scrollTop = top - room;
    this.render();
    this.focus(item.key, event.target.dataset.part ?? 'open');
  }
}
