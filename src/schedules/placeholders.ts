import { SourceFailure } from './source-failure.ts';

/** Environment variables, as the process has them. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Only these can be named, so that a file cannot send DATABASE_URL somewhere. */
const wellFormed = /\$\{env:(SCHEDULE_[A-Z0-9_]{1,100})\}/g;

/** What is wrong with the `${…}` in a text, or null. */
export function placeholderProblem(value: string): string | null {
  return value.replace(wellFormed, '').includes('${')
    ? 'may hold ${env:NAME} only, with a NAME that begins with SCHEDULE_'
    : null;
}

/** The variables that a text names, each once. */
export function namedVariables(text: string): string[] {
  return [...new Set([...text.matchAll(wellFormed)].flatMap(([, name]) => name ?? []))];
}

/** The text with its `${env:…}` filled in: not to be logged. @throws SourceFailure */
export function fillIn(value: string, variables: Variables): string {
  return value.replace(wellFormed, (_, name: string) => {
    const found = variables[name];
    if (found === undefined || found === '') {
      throw new SourceFailure('missing_variable', `the environment variable ${name} is not set`);
    }
    return found;
  });
}

/** As `fillIn`, where only the shape counts. */
export function fillInAnything(value: string): string {
  return value.replace(wellFormed, 'x');
}
