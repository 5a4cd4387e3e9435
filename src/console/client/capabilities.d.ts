/** `tools/bundle-console.ts` generates the module from the registry of capabilities. */
declare module 'sluice:capabilities' {
  export const parts: readonly import('./part.ts').Part[];
}
