import { capitalise } from './wording.ts';

// Sentences that name options. Each interface names them in its own way, so they are parts, not text.

export interface NamedOption {
  readonly option: string;
  /** Empty: the sentence is about the option itself. */
  readonly value: string;
  /** The option is the means to what the sentence tells to do: `with` it. */
  readonly isMeans: boolean;
}

export type Part = string | NamedOption;

/** Plain data, since sandboxes send it. */
export type Sentence = string | readonly Part[];

/** How an interface names options. */
export interface Naming {
  readonly name: (named: NamedOption) => string;
  /** Before an option that is a means. */
  readonly means: string;
}

/** Parameters of HTTP, which logs and the database have, too. */
const parameters: Naming = { name: ({ option, value }) => `${option}=${value}`, means: 'with' };

export function named(option: string, value = ''): NamedOption {
  return { option, value, isMeans: false };
}

export function using(option: string, value: string): NamedOption {
  return { option, value, isMeans: true };
}

/** Tag of a template whose values may be options and sentences. */
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

/** The sentence begins with text. */
export function capitaliseSentence(sentence: Sentence): Sentence {
  if (typeof sentence === 'string') return capitalise(sentence);
  return sentence.map((part, index) => (index === 0 && typeof part === 'string' ? capitalise(part) : part));
}
