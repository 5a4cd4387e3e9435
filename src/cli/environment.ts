/** Environment variables, as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment with other values, which win over a value of that name and over a file that holds it (NAME_FILE). */
export function overrideEnvironment(environment: Environment, values: Environment): Environment {
  const files = Object.keys(values).map((name) => [`${name}_FILE`, undefined]);
  return { ...environment, ...Object.fromEntries(files), ...values };
}
