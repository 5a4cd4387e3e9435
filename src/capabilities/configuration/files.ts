import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TSchema, Type } from 'typebox';
import { environmentNameProblem } from '../../access/environment-store.ts';
import { messageOf } from '../../base/errors.ts';
import { MAX_OPERATOR_FILE_BYTES } from '../../base/limits.ts';
import { type OperatorFile, publishedSchema, readOperatorFile } from '../../base/operator-file/read.ts';
import { objectOf } from '../../base/operator-file/schema.ts';
import { CommandFailed } from '../../cli/errors.ts';
import { readBytes } from '../../cli/input-files.ts';
import type { Declaration, DeclaredSection, OpenSection } from '../../cli/seam.ts';

const MAX_ENVIRONMENT_FILES = 1_000;

export interface NamedFile {
  readonly environment: string;
  readonly path: string;
}

export interface EnvironmentFile extends NamedFile {
  readonly members: readonly Member[];
}

export interface Member {
  readonly name: string;
  readonly section: OpenSection;
  readonly declared: unknown;
}

/** Editors turn `path:line:column` into a link. */
export interface PlacedProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export async function findFiles(folder: string, only: string | undefined): Promise<NamedFile[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new CommandFailed(`The folder ${folder} cannot be read: ${messageOf(error)}`);
  });
  const files = entries
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .flatMap(({ name }) => {
      const environment = /^(.*)\.(?:yaml|yml|json)$/s.exec(name)?.[1];
      return environment === undefined ? [] : [{ environment, path: join(folder, name) }];
    })
    .toSorted((a, b) => compareText(a.environment, b.environment) || compareText(a.path, b.path));
  requireNames(files);
  const chosen = files.filter(({ environment }) => only === undefined || environment === only);
  if (chosen.length > 0) return chosen;
  throw new CommandFailed(
    `There is no file ${join(folder, `${only ?? '<environment>'}.yaml`)}. Each environment has a file of its name.`,
  );
}

const compareText = (a: string, b: string): number => Number(a > b) - Number(a < b);

function requireNames(files: readonly NamedFile[]): void {
  if (files.length > MAX_ENVIRONMENT_FILES)
    throw new CommandFailed(`The folder has more than ${MAX_ENVIRONMENT_FILES} files.`);
  const paths = new Map<string, string>();
  for (const { environment, path } of files) {
    const problem = environmentNameProblem(environment);
    if (problem !== null)
      throw new CommandFailed(`${JSON.stringify(path)} is not named like an environment: ${problem}.`);
    const other = paths.get(environment);
    if (other !== undefined)
      throw new CommandFailed(`${other} and ${path} are of one environment. Leave one out.`);
    paths.set(environment, path);
  }
}

export interface ReadFiles {
  readonly files: readonly EnvironmentFile[];
  readonly problems: readonly PlacedProblem[];
  readonly problemCount: number;
}

/** If one file has a problem, the caller must not apply any of the files. */
export async function readFiles(
  named: readonly NamedFile[],
  sections: readonly DeclaredSection[],
  settings: Omit<Declaration, 'environment'>,
): Promise<ReadFiles> {
  const files: EnvironmentFile[] = [];
  const problems: PlacedProblem[] = [];
  let problemCount = 0;
  for (const { environment, path } of named) {
    const open = await openSections(sections, { ...settings, environment });
    const reading = readOperatorFile(await readBytes(path, MAX_OPERATOR_FILE_BYTES), fileOf(open));
    problemCount += reading.problemCount;
    for (const { line, column, message } of reading.problems)
      problems.push({ file: path, line, column, message });
    const value = (reading.value ?? {}) as Readonly<Record<string, unknown>>;
    const members = open
      .filter(({ name }) => Object.hasOwn(value, name))
      .map((each) => ({ ...each, declared: value[each.name] }));
    files.push({ environment, path, members });
  }
  return { files, problems, problemCount };
}

type NamedSection = Omit<Member, 'declared'>;

function openSections(
  sections: readonly DeclaredSection[],
  declaration: Declaration,
): Promise<NamedSection[]> {
  return Promise.all(
    sections.map(async (each) => ({ name: each.name, section: await each.open(declaration) })),
  );
}

function fileOf(sections: readonly NamedSection[]): OperatorFile<TSchema> {
  const members = sections.map(({ name, section }) => [name, Type.Optional(section.file.schema)] as const);
  return {
    schema: objectOf(
      'an environment file',
      'Configuration of the environment that has the name of the file. What is missing stays as it is.',
      Object.fromEntries(members),
    ),
    emptyHint: 'a file that declares nothing is written `{}`',
    check(root) {
      for (const { name, section } of sections) {
        const place = root.at([name]);
        if (place.isThere) section.file.check(place);
      }
    },
    checkValue(root, value) {
      const members = value as Readonly<Record<string, unknown>>;
      for (const { name, section } of sections) {
        if (Object.hasOwn(members, name)) section.file.checkValue?.(root.at([name]), members[name]);
      }
    },
  };
}

export async function environmentFileSchema(
  sections: readonly DeclaredSection[],
  declaration: Declaration,
): Promise<object> {
  const { schema } = fileOf(await openSections(sections, declaration));
  return publishedSchema('environment', 'Configuration of an environment of sluice', schema);
}
