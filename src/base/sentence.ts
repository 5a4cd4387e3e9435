import { capitalise } from './wording.ts';

// Sentences that mention options consist of parts, because each interface has its own names for
// options.

export interface NamedOption {
  readonly option: string;
  /** Empty if the sentence is about the option and not about a particular value. */
  readonly value: string;
  /** True if the sentence advises the reader to use the option: it contains `with name=value`. */
  readonly isMeans: boolean;
}

export type Part = string | NamedOption;

/** Plain data, because sandboxes send sentences to another process. */
export type Sentence = string | readonly Part[];

export interface Naming {
  readonly name: (option: NamedOption) => string;
  /** Word before a recommended option, such as `with`. */
  readonly means: string;
}

/** Uses the names of HTTP parameters, as do logs and the database. */
const parameters: Naming = { name: ({ option, value }) => `${option}=${value}`, means: 'with' };

export function named(option: string, value = ''): NamedOption {
  return { option, value, isMeans: false };
}

export function using(option: string, value: string): NamedOption {
  return { option, value, isMeans: true };
}

/** Template tag for sentences whose inserted values may be options, sentences or numbers. */
export function say(
  texts: TemplateStringsArray,
  ...values: readonly (NamedOption | Sentence | number)[]
): readonly Part[] {
  return texts.flatMap((text, index) => {
    const value = values[index] ?? '';
    return [text, ...(Array.isArray(value) ? value : [typeof value === 'number' ? String(value) : value])];
  });
}

export function write(sentence: Sentence, { name, means }: Naming = parameters): string {
  if (typeof sentence === 'string') return sentence;
  const texts = sentence.map((part) => {
    if (typeof part === 'string') return part;
    return part.isMeans ? `${means} ${name(part)}` : name(part);
  });
  return texts.join('');
}

/** Capitalises a sentence that begins with text. */
export function capitaliseSentence(sentence: Sentence): Sentence {
  if (typeof sentence === 'string') return capitalise(sentence);
  return sentence.map((part, index) => (index === 0 && typeof part === 'string' ? capitalise(part) : part));
}
