import { ERROR_LINE } from './load-failure.js'

/**
 * A program for Node that reads the report of `jest --json` or of Mocha's `json` reporter and
 * prints one line for each test, as Mocha's `json-stream` reporter does: a report on one line,
 * or with each test twice, would be cut when it is long. Without a report it prints its input.
 */
const PROGRAM = [
  'const s=require("fs").readFileSync(0,"utf8"),',
  'm=/\\{"numFailed[^\\n]*|\\{\\n  "stats"[^]*\\n\\}/.exec(s),',
  'put=(k,t)=>process.stdout.write(JSON.stringify([k,t])+"\\n");',
  'let r;try{r=JSON.parse(m[0])}catch{}',
  'const cut=v=>typeof v=="string"?v.slice(0,4000):v;',
  'if(!r)process.stdout.write(s);',
  // Mocha: failures of hooks are no tests, so they come last.
  'else if(r.stats){const k=t=>t.file+" "+t.fullTitle,off=new Set(r.pending.map(k)),',
  'on=new Set(r.tests.map(k)),one=t=>t.err&&(t.err.message!==undefined||t.err.stack)?',
  'put("fail",{title:t.title,fullTitle:t.fullTitle,file:t.file,err:cut(t.err.message),',
  'stack:cut(t.err.stack),expected:cut(t.err.expected),actual:cut(t.err.actual)}):',
  'off.has(k(t))||put("pass",{title:t.title,fullTitle:t.fullTitle,file:t.file});',
  'r.tests.forEach(one);r.failures.filter(t=>!on.has(k(t))).forEach(one);',
  'put("end",{tests:r.stats.tests})}',
  'else{for(const f of r.testResults){',
  'if(f.status=="failed"&&!f.assertionResults.length){',
  'const title="./"+require("path").relative(process.cwd(),f.name);',
  'put("fail",{title,fullTitle:title,file:f.name,err:cut(f.message)})}',
  'for(const t of f.assertionResults){',
  'const d=((t.failureDetails||[])[0]||{}).matcherResult||{},',
  'w=v=>v===undefined?v:cut(JSON.stringify(v)),',
  'stack=(t.failureMessages||[]).join("\\n").replace(/\\n    at .*node_modules.*/g,"");',
  'put(t.status=="passed"?"pass":t.status=="failed"?"fail":"skip",',
  '{title:t.title,fullTitle:[...t.ancestorTitles,t.title].join(" "),file:f.name,',
  '...(stack?{err:cut(stack),expected:w(d.expected),actual:w(d.actual)}:{})})}}',
  'put("end",{tests:r.numTotalTests})}',
].join('')

/** Turns the report that a command prints into lines. */
export const AS_LINES: string = ` | node -e '${PROGRAM}'`

/** Keeps of such lines only what names a test and its outcome. */
export const WITHOUT_DETAILS: string =
  ` | grep -E '^\\["|${ERROR_LINE}'` + ` | sed -E 's/,"(duration|err)":.*/}]/'`

/** Of tests run by name, Jest reports all others as skipped. */
export const WITHOUT_SKIPPED: string = ` | grep -v '^\\["skip"'`
