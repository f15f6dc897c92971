import { domainToASCII } from 'node:url'
import { checkString } from '../../internal/options.js'

/**
 * A compact list of public suffixes: domains under which anyone can register, so that no cookie may
 * span them. Its source is the Public Suffix List (publicsuffix.org, version of 9 February 2023,
 * data under the Mozilla Public License 2.0). It has the second-level names that occur under six or
 * more top-level domains, all second-level names of some large ones, the wildcards, and the best
 * known hosting suffixes. For the rest, pass the whole list to {@link parsePublicSuffixes}.
 *
 * @module
 */

/** By second-level name: the top-level domains under which it is a suffix. */
const BY_NAME = `
  ac: ae at be ci cn cr cy fj gn id il im in ir jp ke kr lk ls ma me mu mw mz ni nz pa pr rs rw
    se sz th tj tz ug uk vn za zm zw
  art: br do dz ht museum sn
  asso: ci dz fr gp ht km mc nc re
  biz: az bb cy et fj id in ki ls mv mw my ni nr pk pl pr ss tj tr tt vn zm
  co: ae ag am ao at bb bi bj bw ci cl cm cr gg gl gy hu id il im in ir it je jp ke kr lc ls ma
    me mg mu mw mz na ni nz om pn pw rs rw st sz th tj tm tt tz ug uk us uz ve vi za zm zw
  com: ac af ag ai al am ar au aw az ba bb bh bi bj bm bn bo br bs bt by bz ci cm cn co cu cv cw
    cy dm do dz ec ee eg es et fj fm fr ge gh gi gl gn gp gr gt gu gy hk hn hr ht im in io iq is
    jo kg ki km kp kw ky kz la lb lc lk lr lv ly mg mk ml mo ms mt mu mv mw mx my na nf ng ni nr
    om pa pe pf ph pk pl pr ps pt py qa re ro sa sb sc sd sg sh sl sn so ss st sv sy tj tm tn to
    tr tt tw ua ug uy uz vc ve vi vn vu ws ye zm
  coop: ar br ht in km mv mw py rw tt
  edu: ac af al ar au az ba bb bh bi bj bm bn bo br bs bt bz ci cn co cu cv cw dm do dz ec ee eg
    es et fm gd ge gh gi gl gn gp gr gt gu gy hk hn ht in iq is it jo kg ki km kn kp kw ky kz la
    lb lc lk lr ls lv ly me mg mk ml mn mo ms mt mv mw mx my mz ng ni nr om pa pe pf ph pk pl pn
    pr ps pt py qa rs sa sb sc sd sg sl sn so ss st sv sy tj tm to tr tt tw ua uy vc ve vn vu ws
    ye za zm
  firm: co ht in nf ro ve
  go: ci cr id it jp ke kr pw th tj tz ug
  gob: ar bo cl do ec es gt hn mx ni pa pe pk sv ve
  gouv: ci fr ht km ml sn
  gov: ac ae af al ar as au az ba bb bf bh bm bn br bs bt by bz cd cl cm cn co cu cx cy dm do dz
    ec ee eg et fj gd ge gh gi gn gr gu gy hk ie il in iq ir is it jo kg ki km kn kp kw kz la lb
    lc lk lr ls lt lv ly ma me mg mk ml mn mo mr ms mu mv mw my mz ng nr om ph pk pl pn pr ps pt
    py qa rs rw sa sb sc sd sg sh sl so ss sx sy tj tl tm tn to tr tt tw ua uk vc ve vn ws ye za
    zm zw
  in: na ni rs th ua us
  info: au az bb bj bo co ec et fj gu ht hu in ke ki la ls mv na nf ni nr pk pl pr ro sd tn tr
    tt tz ve vn zm
  int: ar az bo ci co cv in is la lk mv mw ni pt tj tt ve vn
  me: in it ke so ss tz uk us
  med: br ec ee ht ly om pa pro sa sd
  mil: ac ae al ar az ba bo br by cl cn co cy do ec eg fj ge gh gt hn id in iq jo kg km kr kz lv
    mg mv my mz ng ni no nz pe ph pl py qa rw sh st sy tj tm to tr tw tz uy vc ve ye za zm zw
  mobi: gp ke na ng tt tz
  name: az eg et fj hr jo mk mv my na ng pr qa tj tr tt vn
  ne: jp ke kr pw tz ug us
  net: ac ae af ag ai al am ar au az ba bb bh bj bm bn bo br bs bt bz ci cm cn co cu cw cy dm do
    dz ec eg et fj fm ge gg gl gn gp gr gt gu gy hk hn ht id il im in iq ir is je jo kg ki kn kw
    ky kz la lb lc lk lr ls lv ly ma me mk ml mo ms mt mu mv mw mx my mz nf ng ni nr nz om pa pe
    ph pk pl pn pr ps pt py qa rw sa sb sc sd sg sh sl so ss st sy th tj tm tn to tr tt tw ua uk
    uy uz vc ve vi vn vu ws ye za zm
  nom: ad ag co es fr km mg nc ni pa pe pl re ro tm ve za
  or: at bi ci cr id it jp ke kr mu na pw th tz ug us
  org: ac ae af ag ai al am ar au az ba bb bh bi bj bm bn bo br bs bt bw bz ci cn co cu cv cw cy
    dm do dz ec ee eg es et fj fm ge gg gh gi gl gn gp gr gt gu gy hk hn ht hu il im in iq ir is
    je jo kg ki km kn kp kw ky kz la lb lc lk lr ls lv ly ma me mg mk ml mn mo ms mt mu mv mw mx
    my mz na ng ni nr nz om pa pe pf ph pk pl pn pr ps pt py qa ro rs rw sa sb sc sd se sg sh sl
    sn so ss st sv sy sz tj tm tn to tr tt tw ua ug uk uy uz vc ve vi vn vu ws ye za zm zw
  pro: az br cy ec fj ht in mv na om pr tt vn
  sc: cn ke kr ls tz ug us
  sch: ae id ir jo lk ly ng qa sa ss zm
  tm: cy dz fr hu km mc mg no pl ro se za
  tv: bb bo br im in it na sd tr tz
  web: bo co do gu id lk nf ni pk tj tr ve za
`

/** By top-level domain: more second-level names that are suffixes under it. */
const BY_TOP = `
  ar: bet musica mutual senasa tur
  au: act asn conf id nsw nt oz qld sa tas vic wa
  br: 9guacu abc adm adv agr aju am anani aparecida app arq ato b barueri belem bhz bib bio blog
    bmd boavista bsb campinagrande campinas caxias cim cng cnt contagem coz cri cuiaba curitiba
    def des det dev ecn eco emp enf eng esp etc eti far feira flog floripa fm fnd fortal fot foz
    fst g12 geo ggf goiania gru imb ind inf jab jampa jdf joinville jor jus leg lel log londrina
    macapa maceio manaus maringa mat morena mp mus natal niteroi not ntr odo ong osasco palmas
    poa ppg psc psi pvh qsl radio rec recife rep ribeirao rio riobranco riopreto salvador sampa
    santamaria santoandre saobernardo saogonca seg sjc slg slz sorocaba srv taxi tc tec teo the
    tmp trd tur udi vet vix vlog wiki zlg
  cn: ah bj cq fj gd gs gx gz ha hb he hi hk hl hn jl js jx ln mo nm nx qh sd sh sn sx tj tw xj
    xz yn zj
  fr: aeroport avocat avoues cci chambagri chirurgiens-dentistes experts-comptables
    geometre-expert greta huissier-justice medecin notaires pharmacien port prd veterinaire
  hk: idv
  id: desa my ponpes
  il: idf k12 muni
  in: 5g 6g ai am bihar business ca cn cs delhi dr er gen gujarat ind internet io nic pg post
    res travel uk up us
  jp: ad aichi akita aomori chiba ed ehime fukui fukuoka fukushima gifu gr gunma hiroshima
    hokkaido hyogo ibaraki ishikawa iwate kagawa kagoshima kanagawa kochi kumamoto kyoto lg mie
    miyagi miyazaki nagano nagasaki nara niigata oita okayama okinawa osaka saga saitama shiga
    shimane shizuoka tochigi tokushima tokyo tottori toyama wakayama yamagata yamaguchi
    yamanashi
  kr: busan chungbuk chungnam daegu daejeon es gangwon gwangju gyeongbuk gyeonggi gyeongnam hs
    incheon jeju jeonbuk jeonnam kg ms pe re seoul ulsan
  nz: cri geek gen govt health iwi kiwi maori parliament school
  ph: i ngo
  pl: agro aid atm augustow auto babia-gora bedzin beskidy bialowieza bialystok bielawa
    bieszczady boleslawiec bydgoszcz bytom cieszyn czeladz czest dlugoleka elblag elk glogow
    gmina gniezno gorlice grajewo gsm ilawa jaworzno jelenia-gora jgora kalisz karpacz kartuzy
    kaszuby katowice kazimierz-dolny kepno ketrzyn klodzko kobierzyce kolobrzeg konin konskowola
    kutno lapy lebork legnica lezajsk limanowa lomza lowicz lubin lukow mail malbork malopolska
    mazowsze mazury media miasta mielec mielno mragowo naklo nieruchomosci nowaruda nysa olawa
    olecko olkusz olsztyn opoczno opole ostroda ostroleka ostrowiec ostrowwlkp pc pila pisz
    podhale podlasie polkowice pomorskie pomorze powiat priv prochowice pruszkow przeworsk
    pulawy radom rawa-maz realestate rel rybnik rzeszow sanok sejny sex shop sklep skoczow slask
    slupsk sos sosnowiec stalowa-wola starachowice stargard suwalki swidnica swiebodzin
    swinoujscie szczecin szczytno szkola targi tarnobrzeg tgory tourism travel turek turystyka
    tychy ustka walbrzych warmia warszawa waw wegrow wielun wlocl wloclawek wodzislaw wolomin
    wroclaw zachpomor zagan zarow zgora zgorzelec
  sg: per
  th: mi
  tr: av bbs bel dr gen k12 kep nc pol tel tsk
  tw: club ebiz game idv
  ua: cherkassy cherkasy chernigov chernihiv chernivtsi chernovtsy ck cn cr crimea cv dn
    dnepropetrovsk dnipropetrovsk donetsk dp if ivano-frankivsk kh kharkiv kharkov kherson
    khmelnitskiy khmelnytskyi kiev kirovograd km kr krym ks kv kyiv lg lt lugansk lutsk lv lviv
    mk mykolaiv nikolaev od odesa odessa pl poltava rivne rovno rv sb sebastopol sevastopol sm
    sumy te ternopil uz uzhgorod vinnica vinnytsia vn volyn yalta zaporizhzhe zaporizhzhia
    zhitomir zhytomyr zp zt
  uk: ltd nhs plc police
  vn: health
  za: agric alt grondar law ngo nic nis school
`

/** `*.bd`: every name directly below `bd` is a public suffix; `!` marks one that is not. */
const WILDCARDS = `
  *.bd *.ck !www.ck *.er *.fk *.jm *.kh *.mm *.np *.pg
`

/** Domains of hosting services, whose customers must not share cookies. */
const HOSTING = `
  appspot.com azurewebsites.net bitbucket.io blogspot.com cloudapp.net cloudfront.net
    cloudfunctions.net codeberg.page deno.dev duckdns.org dyndns.org edgecompute.app
    elasticbeanstalk.com firebaseapp.com fly.dev github.io githubusercontent.com gitlab.io
    glitch.me herokuapp.com myshopify.com netlify.app ngrok.io no-ip.org now.sh onrender.com
    pages.dev readthedocs.io repl.co run.app s3.amazonaws.com translate.goog vercel.app web.app
    workers.dev
`

/** Returns whether `domain`, in lower case and without a final dot, is a public suffix. */
export type PublicSuffixTest = (domain: string) => boolean

function groups(text: string): [string, string[]][] {
  const found: [string, string[]][] = []
  for (const word of text.trim().split(/\s+/)) {
    if (word.endsWith(':')) found.push([word.slice(0, -1), []])
    else found.at(-1)![1].push(word)
  }
  return found
}

function builtInRules(): Set<string> {
  const rules = new Set([...WILDCARDS.trim().split(/\s+/), ...HOSTING.trim().split(/\s+/)])
  for (const [name, tops] of groups(BY_NAME)) for (const top of tops) rules.add(`${name}.${top}`)
  for (const [top, names] of groups(BY_TOP)) for (const name of names) rules.add(`${name}.${top}`)
  return rules
}

function testOf(rules: ReadonlySet<string>): PublicSuffixTest {
  return (domain) => {
    const dot = domain.indexOf('.')
    // A top-level domain is a suffix even if it is not listed.
    if (dot === -1) return true
    if (rules.has(`!${domain}`)) return false
    return rules.has(domain) || rules.has(`*${domain.slice(dot)}`)
  }
}

let builtIn: PublicSuffixTest | null = null

/** Tests against the compact list, which is parsed at the first call. */
export const isPublicSuffix: PublicSuffixTest = (domain) =>
  (builtIn ??= testOf(builtInRules()))(domain)

/**
 * Makes a test from the full Public Suffix List, in the format of publicsuffix.org.
 *
 * @example
 * ```ts
 * const publicSuffixes = parsePublicSuffixes(readFileSync('public_suffix_list.dat', 'utf8'))
 * const cookies = new Cookies(null, { publicSuffixes })
 * ```
 */
export function parsePublicSuffixes(list: string): PublicSuffixTest {
  checkString('a list of public suffixes', list)
  const rules = new Set<string>()
  for (const line of list.split('\n')) {
    const rule = line.trim().split(/\s/)[0]!
    if (rule === '' || rule.startsWith('//')) continue
    // Rules are in Unicode, cookie domains in ASCII.
    const mark = /^(?:!|\*\.)?/.exec(rule)![0]
    rules.add(mark + domainToASCII(rule.slice(mark.length)))
  }
  return testOf(rules)
}
