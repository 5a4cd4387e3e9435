/**
 * The documentation site: its pages, their places, and the targets of links between files. The
 * files remain in their folders and can also be read on GitHub. Links are relative to their file,
 * and anchors have GitHub's form.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..');

/**
 * Files of the repository that are pages. The README is not a page, because it leads to the site.
 */
export const pageFiles: readonly string[] = [
  ...markdownIn('.', false),
  ...['docs', 'sql', 'examples'].flatMap((folder) => markdownIn(folder, true)),
]
  .filter((file) => file !== 'README.md')
  .sort();

function markdownIn(folder: string, recursive: boolean): string[] {
  return readdirSync(join(root, folder), { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name).replaceAll('\\', '/'));
}

/**
 * Subjects in order, with their pages. Pages that are not listed are in the subject of their
 * folder, or in Reference.
 */
const pagesBySubject: Readonly<Record<string, readonly string[]>> = {
  Start: ['docs/start.md', 'docs/install.md', 'docs/how-to/hosted-analytics.md'],
  'Load data': [
    'docs/loads.md',
    'docs/files.md',
    'docs/how-to/nightly-file.md',
    'docs/how-to/sdks.md',
    'docs/how-to/segment.md',
    'docs/how-to/commands.md',
    'docs/inbox.md',
    'docs/schedules.md',
    'docs/undo.md',
    'docs/all-or-nothing.md',
  ],
  Export: [
    'docs/exports.md',
    'docs/where.md',
    'docs/how-to/warehouse.md',
    'docs/segments.md',
    'docs/definitions.md',
  ],
  Console: ['docs/console/README.md', 'docs/oidc.md', 'docs/deletion.md', 'docs/personal-data.md'],
  Operate: [
    'docs/operations.md',
    'docs/scaling.md',
    'docs/hosted-postgres.md',
    'docs/storage.md',
    'docs/moving.md',
    'docs/notifications.md',
    'docs/audit.md',
    'docs/environments.md',
    'SECURITY.md',
  ],
  'HTTP interface': ['docs/api.md', 'examples/clients/README.md'],
  Reference: [
    'docs/errors.md',
    'docs/configuration.md',
    'sql/README.md',
    'docs/guarantees.md',
    'docs/benchmarks.md',
    'docs/glossary.md',
    'CHANGELOG.md',
  ],
  Decisions: ['docs/decisions/README.md', 'docs/architecture.md', 'CONTRIBUTING.md', 'docs/releasing.md'],
};

export interface Section {
  readonly title: string;
  readonly pages: readonly { readonly file: string; readonly title: string }[];
}

/** Every page except the first is in exactly one section. */
export function sections(): Section[] {
  const placed = new Set(Object.values(pagesBySubject).flat());
  const others = pageFiles.filter((file) => !placed.has(file) && file !== 'docs/README.md');
  const follow = (title: string) => others.filter((file) => subjectOf(file) === title);
  return Object.entries(pagesBySubject)
    .map(([title, files]) => ({
      title,
      pages: [...files.filter((file) => pageFiles.includes(file)), ...follow(title)].map((file) => ({
        file,
        title: titleOf(file),
      })),
    }))
    .filter(({ pages }) => pages.length > 0);
}

function subjectOf(file: string): string {
  if (file.startsWith('docs/decisions/')) return 'Decisions';
  return file.startsWith('docs/api/') ? 'HTTP interface' : 'Reference';
}

function titleOf(file: string): string {
  const [, heading] = /^# (.+)$/m.exec(readFileSync(join(root, file), 'utf8')) ?? [];
  return heading?.replaceAll('`', '') ?? file;
}

/**
 * Returns the place of a page in the site. For example, `docs/inbox.md` becomes `inbox.md`, and a
 * README becomes the first page of its folder.
 */
export function placeOf(file: string): string {
  const place = file.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');
  return place.includes('/') ? place : place.toLowerCase();
}

export type Target =
  | { readonly kind: 'page'; readonly place: string; readonly anchor: string }
  | { readonly kind: 'file'; readonly file: string };

/**
 * Returns the page to which a relative link in a file leads, or the file that the site copies.
 * Throws if there is neither.
 */
export function targetOf(file: string, link: string): Target {
  const [path = '', anchor = ''] = link.split('#');
  const target = path === '' ? file : relative(root, resolve(root, dirname(file), path));
  const stat = statSync(join(root, target), { throwIfNoEntry: false });
  const page = stat?.isDirectory() ? join(target, 'README.md') : target;
  if (target === 'README.md') return { kind: 'page', place: 'index.md', anchor: '' };
  if (pageFiles.includes(page)) return { kind: 'page', place: placeOf(page), anchor };
  if (stat?.isFile() && !target.startsWith('..')) return { kind: 'file', file: target };
  throw new Error(`${file} links to ${link}, which is neither a page nor a file`);
}

export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
