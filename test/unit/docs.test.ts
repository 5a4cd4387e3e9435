import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { anchorOf, pageFiles, placeOf, root, sections, targetOf } from '../../site/pages.ts';
import { describeApi } from '../../tools/describe-api.ts';

/** `npm run generate:docs` writes this page, which is not committed. */
const builtPage = 'docs/proofs.md';

const pages = ['README.md', ...pageFiles.filter((page) => page !== builtPage)];

// proves: docs-true
test.each(pages)('%s names only files that exist', (page) => {
  const paths = [...read(page).matchAll(/`((?:src|jobs|sql|test|docs|tools|bench|examples)\/[^`\s]*)`/g)].map(
    ([, path = '']) => path.replace(/:\d+$/, ''),
  );
  expect(paths.filter((path) => path !== builtPage && !isThere(path))).toEqual([]);
});

// proves: docs-true
test.each(pages)('every link on %s has a target', (page) => {
  expect(linksOf(page).filter((link) => !leadsSomewhere(page, link))).toEqual([]);
});

test('docs/api.md and the page of its tag have every route', async () => {
  const { paths } = await describeApi();
  const overview = read('docs/api.md');
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { tags = [] }]) => {
      const route = `\`${method.toUpperCase()} ${path}\``;
      return { route, isThere: overview.includes(route) && read(`docs/api/${tags[0]}.md`).includes(route) };
    }),
  );
  expect(routes.length).toBeGreaterThan(40);
  expect(routes.filter((each) => !each.isThere)).toEqual([]);
});

interface Alert {
  readonly alert: string;
  readonly annotations: { readonly runbook: string };
}

// proves: alerts
test('docs/operations.md lists the alerts of examples/monitoring, whose runbooks exist', () => {
  const { groups } = parse(read('examples/monitoring/alerts.yml')) as {
    readonly groups: readonly { readonly rules: readonly Alert[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  const documented = Array.from(
    read('docs/operations.md').matchAll(/^\| `(Sluice\w+)` \|/gm),
    ([, alert]) => alert,
  );
  expect(documented.length).toBeGreaterThan(15);
  expect(documented).toEqual(rules.map((rule) => rule.alert));
  // People who read an alert do not have the repository, so the link must be a complete URL.
  const { homepage } = JSON.parse(read('package.json')) as { readonly homepage: string };
  const base = `${homepage.replace(/#.*/, '')}/blob/main/`;
  for (const { annotations } of rules) {
    expect(annotations.runbook.slice(0, base.length)).toBe(base);
    const page = annotations.runbook.slice(base.length);
    expect([page, leadsSomewhere('README.md', page)]).toEqual([page, true]);
  }
});

test('every page of docs/ has a link from another page', () => {
  const linkedPages = new Set(
    pages.flatMap((page) =>
      linksOf(page).flatMap((link) => {
        const target = targetOf(page, link);
        return target.kind === 'page' && target.place !== placeOf(page) ? [target.place] : [];
      }),
    ),
  );
  const isLinked = (page: string) => linkedPages.has(placeOf(page));
  expect(pages.filter((page) => page.startsWith('docs/') && !isLinked(page))).toEqual([]);
});

// proves: docs-true
test('every page is in the navigation of the site exactly once', () => {
  const navigation = sections();
  expect(navigation.map(({ title }) => title)).toEqual([
    'Start',
    'Load data',
    'Export',
    'Console',
    'Operate',
    'HTTP interface',
    'Reference',
    'Decisions',
  ]);
  const inIt = navigation.flatMap(({ pages }) => pages.map(({ file }) => file));
  expect([...inIt, 'docs/README.md'].sort()).toEqual([...pageFiles].sort());
});

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

/** If the path contains `<noun>` or `*`, only the folder before the placeholder must exist. */
function isThere(path: string): boolean {
  const fixed = path.split(/[<*]/, 1)[0] ?? '';
  return existsSync(join(root, fixed === path ? path : dirname(`${fixed}x`)));
}

function proseOf(page: string): string {
  return read(page)
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]]/g, ''));
}

function linksOf(page: string): string[] {
  return [...proseOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => link);
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return false;
  return anchor === undefined || anchorsOf(target).includes(anchor);
}

function anchorsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
}
