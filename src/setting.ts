/** One setting: its name in the environment, its default as written there, what it means, how it is read. */
export interface Setting<T> {
  readonly name: string;
  readonly fallback: string;
  readonly meaning: string;
  /** Never shown. A password within a URL is not either. */
  readonly secret?: boolean;
  readonly read: (text: string) => T;
}

/** The configuration is wrong; the message names the setting and its rule. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export function text(name: string, fallback: string, meaning: string): Setting<string> {
  return { name, fallback, meaning, read: (value) => value };
}

export function secretText(name: string, fallback: string, meaning: string): Setting<string> {
  return { ...text(name, fallback, meaning), secret: true };
}

export function integer(
  name: string,
  fallback: string,
  meaning: string,
  least: number,
  most: number,
): Setting<number> {
  return {
    name,
    fallback,
    meaning,
    read(value) {
      const number = Number(value);
      if (/^\d+$/.test(value) && number >= least && number <= most) return number;
      throw new ConfigError(`${JSON.stringify(value)} is not a whole number from ${least} to ${most}`);
    },
  };
}

const units: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

export function bytes(name: string, fallback: string, meaning: string): Setting<number> {
  return {
    name,
    fallback,
    meaning: `${meaning} Bytes, or with a unit: 64k, 10m, 2g.`,
    read(value) {
      const match = /^(\d+)\s*([kmgt]?)i?b?$/i.exec(value);
      const number = Number(match?.[1]) * (units[match?.[2]?.toLowerCase() ?? ''] ?? Number.NaN);
      if (Number.isSafeInteger(number) && number > 0) return number;
      throw new ConfigError(`${JSON.stringify(value)} is not a number of bytes such as 512m or 10g`);
    },
  };
}

export function oneOf<const T extends string>(
  name: string,
  fallback: T,
  meaning: string,
  allowed: readonly T[],
): Setting<T> {
  return {
    name,
    fallback,
    meaning: `${meaning} One of ${allowed.join(', ')}.`,
    read(value) {
      const found = allowed.find((item) => item === value);
      if (found !== undefined) return found;
      throw new ConfigError(`${JSON.stringify(value)} is not one of ${allowed.join(', ')}`);
    },
  };
}
