import { InvalidArgumentError } from 'commander';
import type { MaxErrors } from '../../domain/load.ts';

/** `Their Header=user_id`, any number of times. The last `=` divides: our names have none. */
export function collectMap(text: string, earlier: Readonly<Record<string, string>>): Record<string, string> {
  const at = text.lastIndexOf('=');
  const [theirs, ours] = [text.slice(0, at), text.slice(at + 1).trim()];
  if (at < 1 || ours === '') throw new InvalidArgumentError('write "Their Header=user_id".');
  return { ...earlier, [theirs]: ours };
}

/** `100` or `5%`. */
export function parseMaxErrors(text: string): MaxErrors {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(text.trim());
  const number = Number(match?.[1]);
  if (match?.[2] === '%' && number <= 100) return { percent: number };
  if (match?.[2] === '' && Number.isSafeInteger(number)) return { count: number };
  throw new InvalidArgumentError('write a number such as 100, or a share such as 5%.');
}

export function parseCount(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('write a whole number above 0.');
}
