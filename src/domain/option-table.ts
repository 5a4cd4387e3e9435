import { inputError } from '../base/errors.ts';
import { type Naming, named } from '../base/sentence.ts';
import { throwProblems } from '../base/validation.ts';
import { capitalise } from '../base/wording.ts';
import type { SourceFormat, SourceOptions } from './source.ts';
import type { OptionSeam, SourceOption, SourceProblem } from './source-option.ts';
import { coreOptions } from './source-options.ts';

/** Merges the options of core and capabilities. @throws if two have the same name */
export function optionsByName<Option>(
  seams: readonly { readonly options?: Readonly<Record<string, Option>> }[],
): ReadonlyMap<string, Option> {
  const options = new Map<string, Option>();
  for (const [name, option] of seams.flatMap((seam) => Object.entries(seam.options ?? {}))) {
    if (options.has(name)) throw new Error(`there are two options ${name}`);
    options.set(name, option);
  }
  return options;
}

/** Values of a request by option name. Unknown names are ignored. */
export type GivenSource = Readonly<Record<string, unknown>>;

/**
 * The load options, from which the schemas of queries, forms, operators' files and flags are
 * derived.
 */
export class OptionTable {
  readonly names: readonly string[];
  readonly #seams: readonly Partial<OptionSeam>[];
  readonly #options: ReadonlyMap<string, SourceOption>;
  /** `name=value` in messages. */
  readonly #named: RegExp;

  constructor(seams: readonly Partial<OptionSeam>[]) {
    this.#seams = [coreOptions, ...seams];
    this.#options = optionsByName(this.#seams);
    this.names = [...this.#options.keys()];
    const names = [...this.names, 'preset', 'entity'].join('|');
    this.#named = new RegExp(`\\b(?:(${names})=([\\w-]*)|(map)=([\\w-]+=[\\w-]+))`, 'g');
  }

  option(name: string): SourceOption {
    const option = this.#options.get(name);
    if (option === undefined) throw new Error(`there is no option ${name}`);
    return option;
  }

  schemaOf(name: string) {
    const { type, range, choices, description, examples } = this.option(name);
    return {
      type,
      ...(range !== undefined && { minimum: range[0], maximum: range[1] }),
      ...(type === 'array' && { items: { type: 'string' } }),
      ...(choices !== undefined && { enum: choices }),
      description: `${capitalise(description)}.`,
      examples,
    };
  }

  /**
   * Returns the rule that a value violates, or `null`. In a message, the text of the rule comes
   * after the option's name.
   */
  problem(name: string, value: unknown): string | null {
    const { read, type, rule, max = 1 } = this.option(name);
    const items = type === 'array' ? itemsOf(value) : [value];
    if (items.length > max) return rule;
    return items.every((item) => isWritten(item) && read(String(item)) !== undefined) ? null : rule;
  }

  contradictions(source: SourceOptions): readonly SourceProblem[] {
    return this.#seams.flatMap((seam) => seam.contradictions?.(source) ?? []);
  }

  /**
   * Returns the options that have no effect, because another option is missing. `source` must be
   * complete.
   */
  unmetNeeds(source: SourceOptions): readonly SourceProblem[] {
    return [...this.#options].flatMap(([name, { needs }]) => {
      const isMet = needs === undefined || source[keyOf(needs)] !== undefined;
      return isMet || source[keyOf(name)] === undefined
        ? []
        : [{ name, what: `has no effect without ${needs}` }];
    });
  }

  /**
   * Converts the values of a request, which must be valid. The result omits options that are
   * missing or switched off.
   */
  read(values: GivenSource): SourceOptions {
    const entries = [...this.#options].flatMap(([name, { type, read }]): [string, unknown][] => {
      const value = values[name];
      if (value === undefined || value === null) return [];
      const items = itemsOf(value).map((item) => read(String(item)));
      const meant = type === 'array' ? [...new Set(items)] : items[0];
      return meant === undefined || meant === false || items.length === 0 ? [] : [[keyOf(name), meant]];
    });
    const options = Object.fromEntries(entries) as SourceOptions;
    // If `quote` is missing, an `escape` other than a backslash is also the quote that encloses
    // cells.
    const { quote, escape: mark = '' } = options;
    return quote !== undefined || mark === '' || mark === '\\' ? options : { ...options, quote: mark };
  }

  reusable(source: SourceOptions): SourceOptions {
    const entries = Object.entries(source).filter(
      ([key]) => this.#options.get(nameOf(key))?.isOfOneFile !== true,
    );
    return Object.fromEntries(entries);
  }

  /**
   * Returns the name of a given option that applies to one file only, or `undefined` if there is
   * none.
   */
  ofOneFile(source: SourceOptions): string | undefined {
    return this.names.find(
      (name) => this.option(name).isOfOneFile === true && source[keyOf(name)] !== undefined,
    );
  }

  findDifference(one: SourceOptions, other: SourceOptions): string | undefined {
    return this.names.find((name) => JSON.stringify(one[keyOf(name)]) !== JSON.stringify(other[keyOf(name)]));
  }

  readonly flags: Naming = {
    name: ({ option, value }) => {
      const isBoolean = this.#options.get(option)?.type === 'boolean';
      if (value === '' || isBoolean) return flagOf(option);
      return `${flagOf(option)} ${option === 'map' ? `"${value}"` : value}`;
    },
    preposition: 'with',
  };

  /** Replaces option names in a stored message, such as that of a failed load. */
  withFlags(message: string): string {
    return message.replace(this.#named, (_, option?: string, value = '', map = '', renaming = '') =>
      this.flags.name(option === undefined ? named(map, renaming) : named(option, value)),
    );
  }
}

export const yamlKeys: Naming = {
  name({ option, value }) {
    if (option !== 'map') return `\`${option}:${value === '' ? '' : ` ${value}`}\``;
    const at = value.lastIndexOf('=');
    return `\`map: { "${value.slice(0, at)}": ${value.slice(at + 1)} }\``;
  },
  preposition: 'with',
};

export function toGivenSource(options: SourceOptions): GivenSource {
  const entries = Object.entries(options).map(([key, value]) => [nameOf(key), value === '' ? 'none' : value]);
  return Object.fromEntries(entries);
}

export function flagOf(name: string): string {
  return `--${name.replaceAll('_', '-')}`;
}

/** `maxRemoved` for `max_removed`. */
export function keyOf(name: string): string {
  return name === 'null' ? 'nulls' : name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function nameOf(key: string): string {
  return key === 'nulls' ? 'null' : key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function isWritten(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

const formatWords: Readonly<Record<SourceFormat, string>> = {
  csv: 'a CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'a Parquet file',
  xlsx: 'a workbook',
};

/** @throws InputError `invalid_field` with all the problems, if there are any */
export function refuseProblems(problems: readonly SourceProblem[]): void {
  throwProblems(
    problems.map(({ name, what }) => ({ code: 'invalid_field', message: `${name} ${what}`, details: name })),
  );
}

/** @throws InputError `invalid_field` for the first option that does not fit the format */
export function requireFitting(source: SourceOptions, format: SourceFormat): void {
  const wrong = Object.entries(coreOptions.options).find(
    ([name, { formats }]) => source[keyOf(name)] !== undefined && formats?.includes(format) === false,
  );
  if (wrong === undefined) return;
  const [name, { formats = [] }] = wrong;
  const meant = formats.map((each) => formatWords[each]).join(' or ');
  const message = `${name} says how to read ${meant}; the file was read as ${formatWords[format]}`;
  throw inputError('invalid_field', message, name);
}
