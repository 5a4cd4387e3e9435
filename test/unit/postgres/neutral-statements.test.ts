import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it, test } from 'vitest';
import { datasets } from '../../../src/domain/export.ts';
import { selectValues } from '../../../src/export/write/page.ts';
import { selectStreamEvents, selectStreamProfiles } from '../../../src/export/write/stream.ts';
import { compileForCopy } from '../../../src/postgres/copy-out.ts';
import { everything } from '../../support/files/export-files.ts';

const root = resolve(import.meta.dirname, '../../..');
const readSource = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesOf = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => join(folder, name))
    .sort();
const migrations = filesOf('sql/migrations', '.sql').map(readSource).join('\n');

const tags = 'rowsOf|rowOf|firstRow|hasRows|columnOf|findValue|countOf|changedBy|isTrue';
const beginning = new RegExp(
  `(?:sql(?:<[^\`]*>)?|\\b(?:${tags})(?:<[^\`]*>)?\\(\\w+\\))\`|doUpdateSet\\(`,
  'g',
);

const statements = [
  ...filesOf('sql', '.sql').flatMap((path) =>
    readSource(path)
      .replaceAll(/--.*$/gm, '')
      .split(/;\n/)
      .map((text) => ({ path, text })),
  ),
  ...filesOf('src', '.ts').flatMap((path) => sqlTextsOf(readSource(path)).map((text) => ({ path, text }))),
];

/** Returns each SQL statement, up to the end of its outermost template string. */
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

/**
 * The part of each statement from `do update set` to `returning`, and the whole file that assembles
 * the merge.
 */
const conflictSets = [
  { path: 'src/load/merge/upsert.ts', text: readSource('src/load/merge/upsert.ts') },
  ...statements.flatMap(({ path, text }) =>
    [...text.matchAll(/do update\s+set|doUpdateSet\(/g)].map(({ index }) => ({
      path,
      text: text.slice(index).split(/\n\s*returning\b|\.returning/)[0] ?? '',
    })),
  ),
];

// proves: distributable
it.each(['events', 'event_ids'])('every unique key of the table %s contains the user', (table) => {
  const createdKey = new RegExp(`create table sluice\\.${table} \\([^;]*?primary key \\(([^)]*)\\)`).exec(
    migrations,
  );
  expect(createdKey?.[1]?.split(', ')).toContain('user_id');
  const indexes = [
    ...migrations.matchAll(new RegExp(`create unique index[^;]*on sluice\\.${table} [^;]*`, 'g')),
  ];
  expect(indexes.filter(([text]) => !text.includes('user_id'))).toEqual([]);
});

// proves: distributable
it('every function that ON CONFLICT uses is immutable', () => {
  const usedFunctions = new Set(
    conflictSets.flatMap(({ text }) => [...text.matchAll(/sluice\.(\w+)\(/g)].map(([, name]) => name)),
  );
  expect(usedFunctions.size).toBeGreaterThan(0);
  const isImmutable = (name: string | undefined): boolean =>
    new RegExp(`create function sluice\\.${name}\\([^;]*?language sql immutable`).test(migrations) ||
    migrations.includes(`create aggregate sluice.${name}(`);
  expect([...usedFunctions].filter((name) => !isImmutable(name))).toEqual([]);
});

it('every select list names a column', () => {
  const files = [...filesOf('src', '.ts'), ...filesOf('sql', '.sql')];
  expect(files.filter((path) => /\bselect\s+(?:from|where)\b/.test(readSource(path)))).toEqual([]);
});

it('no statement sets the current time or a random value on conflict', () => {
  expect(conflictSets.length).toBeGreaterThan(10);
  expect(conflictSets.filter(({ text }) => /\b(?:now|clock_timestamp|random)\(/.test(text))).toEqual([]);
});

it('every instant is written in an explicit time zone', () => {
  const instantText = /to_char\((?:(?!to_char)[^;])*?HH24/g;
  const instantTexts = statements.flatMap(({ text }) => text.match(instantText) ?? []);
  expect(instantTexts.length).toBeGreaterThan(1);
  expect(instantTexts.filter((text) => !text.includes('at time zone'))).toEqual([]);
});

// proves: distributable
it('every join of events by their id also compares the user', () => {
  const joins = statements.flatMap(({ path, text }) =>
    /notification_events|deliver/.test(path + text)
      ? []
      : [...text.matchAll(/\b(\w)\.event_id = (\w)\.event_id/g)].map(([, a, b]) => ({ path, text, a, b })),
  );
  expect(joins.length).toBeGreaterThan(4);
  const comparesUser = ({ text, a, b }: (typeof joins)[number]): boolean =>
    text.includes(`${a}.user_id = ${b}.user_id`);
  expect(joins.filter((join) => !comparesUser(join)).map(({ path }) => path)).toEqual([]);
});

const request = { ...everything, to: '2026-12-01T00:00:00Z' };
const filter = { environmentId: 1, request, segment: null, excludedSegments: [] };

test('the outermost select of an export sets its order', () => {
  const selects = [
    ...datasets.map((dataset) => compileForCopy(selectValues(dataset, filter))),
    selectStreamEvents(filter),
    selectStreamProfiles(filter),
  ];
  for (const select of selects) expect(outermost(select?.text ?? '')).toMatch(/ order by "page"\."/);
});

function outermost(text: string): string {
  let remaining = text;
  let previous: string;
  do {
    previous = remaining;
    remaining = remaining.replaceAll(/\([^()]*\)/g, '');
  } while (previous !== remaining);
  return remaining;
}
