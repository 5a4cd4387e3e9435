import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** The pages for people. */
const pages = ['.', 'docs', 'docs/decisions', 'sql'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);

test('the README is short', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(150);
});

test.each(pages)('%s names only files that exist', (page) => {
  const named = [...read(page).matchAll(/`((?:src|jobs|sql|test|docs|tools|bench|examples)\/[^`\s]*)`/g)].map(
    ([, path = '']) => path.replace(/:\d+$/, ''),
  );
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

test.each(pages)('%s links only to what exists', (page) => {
  expect(linksOf(page).filter((link) => !leadsSomewhere(page, link))).toEqual([]);
});

test('docs/api.md has every route of docs/openapi.json', () => {
  const { paths } = JSON.parse(read('docs/openapi.json')) as { readonly paths: Record<string, unknown> };
  const reference = read('docs/api.md');
  const lastWords = Object.keys(paths).map(
    (path) => path.split('/').findLast((part) => !part.startsWith('{')) ?? '',
  );
  expect(lastWords.filter((word) => !reference.includes(word))).toEqual([]);
});

test('every page of docs/ is reached by a link from another', () => {
  const linked = new Set(
    pages.flatMap((page) =>
      linksOf(page)
        .map((link) => targetOf(page, link))
        .filter((each) => each !== page),
    ),
  );
  expect(pages.filter((page) => page.startsWith('docs/') && !linked.has(page))).toEqual([]);
});

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

/** `<noun>` and `*` stand for any name: then their folder must exist. */
function isThere(path: string): boolean {
  const fixed = path.split(/[<*]/, 1)[0] ?? '';
  return existsSync(join(root, fixed === path ? path : dirname(`${fixed}x`)));
}

function linksOf(page: string): string[] {
  return [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => link);
}

function targetOf(page: string, link: string): string {
  const [path = ''] = link.split('#');
  return path === '' ? page : relative(root, resolve(root, dirname(page), path));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [, anchor] = link.split('#');
  const target = targetOf(page, link);
  if (!existsSync(join(root, target))) return false;
  return anchor === undefined || anchorsOf(read(target)).includes(anchor);
}

/** Of headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
