import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { datasets } from '../../../src/domain/export.ts';
import { selectValues } from '../../../src/export/write/page.ts';
import { selectStreamEvents, selectStreamProfiles } from '../../../src/export/write/stream.ts';
import { compileForCopy } from '../../../src/postgres/copy-out.ts';
import { everything } from '../../support/export-files.ts';

const root = resolve(import.meta.dirname, '../../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesOf = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => join(folder, name))
    .sort();
const migrations = filesOf('sql/migrations', '.sql').map(read).join('\n');

const tags = 'rowsOf|rowOf|firstRow|hasRows|columnOf|findValue|countOf|changedBy|isTrue';
const beginning = new RegExp(
  `(?:sql(?:<[^\`]*>)?|\\b(?:${tags})(?:<[^\`]*>)?\\(\\w+\\))\`|doUpdateSet\\(`,
  'g',
);

/** Every statement: the files of sql/, and the texts between backticks of the program. */
const statements = [
  ...filesOf('sql', '.sql').flatMap((path) =>
    read(path)
      .replaceAll(/--.*$/gm, '')
      .split(/;\n/)
      .map((text) => ({ path, text })),
  ),
  ...filesOf('src', '.ts').flatMap((path) => sqlTextsOf(read(path)).map((text) => ({ path, text }))),
];

/** Up to the end of the outermost text: those within it are part of it. */
function sqlTextsOf(source: string): string[] {
  return [...source.matchAll(beginning)].map(({ index }) => {
    let depth = 0;
    for (let at = index; at < source.length; at++) {
      const char = source[at];
      if (char === '(' || char === '{') depth++;
      if (char === ')' || char === '}') depth--;
      if (depth < 0 || (depth === 0 && char === ';')) return source.slice(index, at);
    }
    return source.slice(index);
  });
}

/** The texts from ON CONFLICT to RETURNING, and the files in which the merge puts its own together. */
const conflictSets = [
  { path: 'src/load/merge/upsert.ts', text: read('src/load/merge/upsert.ts') },
  ...statements.flatMap(({ path, text }) =>
    [...text.matchAll(/do update\s+set|doUpdateSet\(/g)].map(({ index }) => ({
      path,
      text: text.slice(index).split(/\n\s*returning\b|\.returning/)[0] ?? '',
    })),
  ),
];

describe('the schema', () => {
  // proves: distributable
  it.each(['events', 'event_ids'])('has the user in the key of %s', (table) => {
    const created = new RegExp(`create table sluice\\.${table} \\([^;]*?primary key \\(([^)]*)\\)`).exec(
      migrations,
    );
    expect(created?.[1]?.split(', ')).toContain('user_id');
    const indexes = [
      ...migrations.matchAll(new RegExp(`create unique index[^;]*on sluice\\.${table} [^;]*`, 'g')),
    ];
    expect(indexes.filter(([text]) => !text.includes('user_id'))).toEqual([]);
  });

  // proves: distributable
  it('has no function that ON CONFLICT sets by and that is not immutable', () => {
    const used = new Set(
      conflictSets.flatMap(({ text }) => [...text.matchAll(/sluice\.(\w+)\(/g)].map(([, name]) => name)),
    );
    expect(used.size).toBeGreaterThan(0);
    const isImmutable = (name: string | undefined): boolean =>
      new RegExp(`create function sluice\\.${name}\\([^;]*?language sql immutable`).test(migrations) ||
      migrations.includes(`create aggregate sluice.${name}(`);
    expect([...used].filter((name) => !isImmutable(name))).toEqual([]);
  });
});

describe('no statement', () => {
  it('has an empty select list', () => {
    const files = [...filesOf('src', '.ts'), ...filesOf('sql', '.sql')];
    expect(files.filter((path) => /\bselect\s+(?:from|where)\b/.test(read(path)))).toEqual([]);
  });

  it('sets a time of its own where a row is there: it takes that of the row which was to be inserted', () => {
    expect(conflictSets.length).toBeGreaterThan(10);
    expect(conflictSets.filter(({ text }) => /\b(?:now|clock_timestamp|random)\(/.test(text))).toEqual([]);
  });

  it('writes an instant in the zone of its session', () => {
    const written = /to_char\((?:(?!to_char)[^;])*?HH24/g;
    const all = statements.flatMap(({ text }) => text.match(written) ?? []);
    expect(all.length).toBeGreaterThan(1);
    expect(all.filter((text) => !text.includes('at time zone'))).toEqual([]);
  });

  // proves: distributable
  it('finds an event of another by its id without the user', () => {
    const joins = statements.flatMap(({ path, text }) =>
      /notification_events|deliver/.test(path + text)
        ? []
        : [...text.matchAll(/\b(\w)\.event_id = (\w)\.event_id/g)].map(([, a, b]) => ({ path, text, a, b })),
    );
    expect(joins.length).toBeGreaterThan(4);
    const names = ({ text, a, b }: (typeof joins)[number]): boolean =>
      text.includes(`${a}.user_id = ${b}.user_id`);
    expect(joins.filter((join) => !names(join)).map(({ path }) => path)).toEqual([]);
  });
});

const request = { ...everything, to: '2026-12-01T00:00:00Z' };
const filter = { environmentId: 1, request, segment: null, excludedSegments: [] };

test('the order of an export is asked for by the outermost select', () => {
  const selects = [
    ...datasets.map((dataset) => compileForCopy(selectValues(dataset, filter))),
    selectStreamEvents(filter),
    selectStreamProfiles(filter),
  ];
  for (const select of selects) expect(outermost(select?.text ?? '')).toMatch(/ order by "page"\."/);
});

/** Without what is in parentheses. */
function outermost(text: string): string {
  let rest = text;
  for (let before = ''; before !== rest; ) {
    before = rest;
    rest = rest.replaceAll(/\([^()]*\)/g, '');
  }
  return rest;
}
